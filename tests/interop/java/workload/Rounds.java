import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.HashSet;
import java.util.Set;

/** Holds producers back until the test begins the next round, so each of its disturbances meets messages on their way. */
class Rounds {
    static final int COUNT = 5;
    private static final long LENGTH = 1_000_000_000L;

    private final int scenarios;
    private final Set<ThreadGroup> arrived = new HashSet<>();
    private final long[] began = new long[COUNT];
    private int count;

    /** Each scenario has a thread group of its own. */
    Rounds(int scenarios) {
        this.scenarios = scenarios;
    }

    /** Says "ready" when the last scenario has made its clients and waits for the first round, or has ended. */
    synchronized void arrive() {
        if (arrived.add(Thread.currentThread().getThreadGroup()) && arrived.size() == scenarios) {
            System.out.println("ready");
            System.out.flush();
        }
    }

    /** Reads a line for each round; at the end of the input all rounds begin. */
    void readFrom(InputStream input) {
        Thread thread = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(input))) {
                while (lines.readLine() != null) {
                    begin();
                }
            } catch (IOException error) {
                System.out.println("end\t" + error);
            }
            for (int round = 0; round < COUNT; round++) {
                begin();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private synchronized void begin() {
        if (count < COUNT) {
            began[count++] = System.nanoTime();
            notifyAll();
        }
    }

    /** Waits for the time of this one of {@code total} messages: its round has begun, and the round's messages take a second. */
    void await(int number, int total) throws InterruptedException {
        arrive();
        int round = (int) ((long) number * COUNT / total);
        long start;
        synchronized (this) {
            while (count <= round) {
                wait();
            }
            start = began[round];
        }
        double part = (double) number * COUNT / total - round;
        long left = start + (long) (part * LENGTH) - System.nanoTime();
        if (left > 1_000_000) {
            Thread.sleep(left / 1_000_000);
        }
    }
}
