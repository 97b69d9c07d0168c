import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * The Java client's side: jobs from standard input, seconds and processor seconds to standard output.
 *
 * <p>Arguments, as jobs.py has them: messages, bytes and milliseconds of a batch, pending messages, messages of the
 * receiver queue, bytes of a payload, seconds of a transaction.
 */
public class Bench {
    private static int batchMessages;
    private static int batchBytes;
    private static long batchDelay;
    private static int pending;
    private static int queue;
    private static byte[] payload;
    private static long timeout;

    public static void main(String[] arguments) throws Exception {
        batchMessages = Integer.parseInt(arguments[0]);
        batchBytes = Integer.parseInt(arguments[1]);
        batchDelay = Long.parseLong(arguments[2]);
        pending = Integer.parseInt(arguments[3]);
        queue = Integer.parseInt(arguments[4]);
        payload = new byte[Integer.parseInt(arguments[5])];
        timeout = Long.parseLong(arguments[6]);
        BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in));
        for (String line = jobs.readLine(); line != null; line = jobs.readLine()) {
            String[] job = line.split("\t");
            String answer;
            try {
                answer = run(job[0], job[1], job[2], Integer.parseInt(job[3]), Integer.parseInt(job[4]));
            } catch (Exception error) {
                answer = "failed\t" + error.toString().replace('\n', ' ');
            }
            System.out.println(answer);
        }
        System.exit(0);
    }

    private static String run(String url, String workload, String topic, int messages, int transactions)
            throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(url).enableTransaction(true)
                        .statsInterval(0, TimeUnit.SECONDS).build();
                Producer<byte[]> producer = client.newProducer().topic(topic + "-out").enableBatching(true)
                        .batchingMaxMessages(batchMessages).batchingMaxBytes(batchBytes)
                        .batchingMaxPublishDelay(batchDelay, TimeUnit.MILLISECONDS).maxPendingMessages(pending)
                        .blockIfQueueFull(true).sendTimeout(0, TimeUnit.SECONDS).create();
                Consumer<byte[]> consumer = workload.equals("pipeline") ? subscribe(client, topic) : null) {
            begin(client).commit().get();
            producer.send(payload);
            double processor = processorSeconds();
            long start = System.nanoTime();
            for (int number = 0; number < transactions; number++) {
                Transaction transaction = begin(client);
                for (int index = 0; index < messages; index++) {
                    if (consumer == null) {
                        producer.newMessage(transaction).value(payload).sendAsync();
                    } else {
                        Message<byte[]> message = consumer.receive();
                        producer.newMessage(transaction).value(message.getData()).sendAsync();
                        consumer.acknowledgeAsync(message.getMessageId(), transaction);
                    }
                }
                transaction.commit().get();
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            return seconds + "\t" + (processorSeconds() - processor);
        }
    }

    private static Consumer<byte[]> subscribe(PulsarClient client, String topic) throws Exception {
        return client.newConsumer().topic(topic).subscriptionName("bench").subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).receiverQueueSize(queue)
                .enableBatchIndexAcknowledgment(true).subscribe();
    }

    private static Transaction begin(PulsarClient client) throws Exception {
        return client.newTransaction().withTransactionTimeout(timeout, TimeUnit.SECONDS).build().get();
    }

    /** Of all threads, the compiler's and the collector's too. */
    private static double processorSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }
}
