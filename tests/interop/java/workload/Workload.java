import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.pulsar.client.api.PulsarClientException;

/**
 * Runs scenarios of the Java client at the same time. Arguments: a service URL that may be disturbed, one that is not, the
 * URL of the administration, a namespace that the program creates, the names of scenarios.
 *
 * <p>A line "round" on the standard input lets the producers send their next part. Lines of output have three parts, with tabs
 * between them: "scenario", its name, and "ok" with figures or "failed" with the reason. "rounds" with their number comes first, "ready"
 * once all scenarios wait for the first round.
 */
public class Workload {
    interface Scenario {
        String run(Setting setting) throws Exception;
    }

    private static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

    static {
        SCENARIOS.put("shared", Subscriptions::shared);
        SCENARIOS.put("key-shared", Subscriptions::keyShared);
        SCENARIOS.put("sticky", Subscriptions::sticky);
        SCENARIOS.put("failover", Subscriptions::failover);
        SCENARIOS.put("pattern", Subscriptions::pattern);
        SCENARIOS.put("cumulative", Logs::cumulative);
        SCENARIOS.put("chunks", Logs::chunks);
        SCENARIOS.put("deduplication", Logs::deduplication);
        SCENARIOS.put("seeks", Logs::seeks);
        SCENARIOS.put("table", Logs::table);
        SCENARIOS.put("partitioned-reader", Logs::partitionedReader);
        SCENARIOS.put("delayed", Queues::delayed);
        SCENARIOS.put("letters", Queues::letters);
        SCENARIOS.put("non-persistent", Queues::nonPersistent);
        SCENARIOS.put("access", Queues::access);
    }

    public static void main(String[] arguments) throws Exception {
        try (Setting setting = new Setting(arguments[0], arguments[1], arguments[2], arguments[3], arguments.length - 4)) {
            System.out.println("rounds\t" + Rounds.COUNT);
            System.out.flush();
            setting.rounds.readFrom(System.in);
            CountDownLatch running = new CountDownLatch(arguments.length - 4);
            for (int place = 4; place < arguments.length; place++) {
                String name = arguments[place];
                Scenario scenario = SCENARIOS.get(name);
                new Thread(new ThreadGroup(name), () -> {
                    say(name, scenario, setting);
                    running.countDown();
                }, name).start();
            }
            running.await();
        } catch (PulsarClientException error) {
            System.out.println("end\t" + error);
        }
        System.exit(0);
    }

    /** The error with the lines of this program in which it came up. */
    private static String reason(Throwable error) {
        StringBuilder text = new StringBuilder(error.toString().replaceAll("\\s+", " "));
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            for (StackTraceElement place : cause.getStackTrace()) {
                if (!place.getClassName().contains(".")) {
                    text.append(" at ").append(place);
                }
            }
        }
        return text.toString();
    }

    private static void say(String name, Scenario scenario, Setting setting) {
        long began = System.nanoTime();
        String outcome;
        try {
            outcome = "ok\t" + scenario.run(setting);
        } catch (Throwable error) {
            outcome = "failed\t" + reason(error);
        }
        setting.rounds.arrive();
        double seconds = (System.nanoTime() - began) / 1e9;
        synchronized (Workload.class) {
            System.out.printf("scenario\t%s\t%s in %.1f s%n", name, outcome, seconds);
            System.out.flush();
        }
    }
}
