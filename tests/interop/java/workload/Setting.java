import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.common.policies.data.DelayedDeliveryPolicies;

/** The clients of all scenarios, their namespaces, and what they all do alike. */
class Setting implements AutoCloseable {
    /** Seconds; the disturbances are over long before. */
    static final int PATIENCE = 120;

    /** Milliseconds that a broker may deliver delayed messages early: the tick of its timer. */
    static final long TICK = 100;

    final PulsarClient client;
    final PulsarClient other;
    /** Its connections are not cut, and topics with "calm" in their names are not unloaded. */
    final PulsarClient calm;
    final PulsarAdmin admin;
    final Rounds rounds;
    private final String namespace;
    private final String url;
    private final String calmUrl;

    Setting(String url, String calmUrl, String adminUrl, String namespace, int scenarios) throws Exception {
        rounds = new Rounds(scenarios);
        this.url = url;
        this.calmUrl = calmUrl;
        this.namespace = namespace;
        client = newClient(url);
        other = newClient(url);
        calm = newClient(calmUrl);
        admin = PulsarAdmin.builder().serviceHttpUrl(adminUrl).build();
        for (String name : new String[] {namespace, namespace + "-deduplication"}) {
            admin.namespaces().createNamespace(name);
            admin.namespaces().setDelayedDeliveryMessages(name,
                    DelayedDeliveryPolicies.builder().active(true).tickTime(TICK).build());
        }
        admin.namespaces().setDeduplicationStatus(namespace + "-deduplication", true);
    }

    private static PulsarClient newClient(String url) throws PulsarClientException {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(url).ioThreads(2).listenerThreads(2)
                .operationTimeout(60, TimeUnit.SECONDS).startingBackoffInterval(50, TimeUnit.MILLISECONDS)
                .maxBackoffInterval(500, TimeUnit.MILLISECONDS);
        return builder.build();
    }

    /** Makes one more client, for a scenario in which a client ends. */
    PulsarClient newClient() throws PulsarClientException {
        return newClient(url);
    }

    PulsarClient newCalmClient() throws PulsarClientException {
        return newClient(calmUrl);
    }

    String namespace() {
        return namespace;
    }

    String topic(String name) {
        return "persistent://" + namespace + "/" + name;
    }

    /** Names a topic that drops what it has. */
    String deduplicated(String name) {
        return "persistent://" + namespace + "-deduplication/" + name;
    }

    String partitioned(String name, int partitions) throws Exception {
        asked(() -> {
            admin.topics().createPartitionedTopic(topic(name), partitions);
            return null;
        });
        return topic(name);
    }

    /** A producer that sends what it has until it is confirmed. */
    static ProducerBuilder<byte[]> producer(PulsarClient client, String topic) {
        return client.newProducer().topic(topic).sendTimeout(0, TimeUnit.SECONDS).blockIfQueueFull(true)
                .batchingMaxPublishDelay(5, TimeUnit.MILLISECONDS);
    }

    static ConsumerBuilder<byte[]> consumer(PulsarClient client, String topic, SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
    }

    /** Sends "prefix:0" and so on, a part in each round, and waits until all are confirmed. */
    void sendNumbers(Producer<byte[]> producer, String prefix, int count) throws Exception {
        for (int number = 0; number < count; number++) {
            rounds.await(number, count);
            producer.newMessage().value(text(prefix, number)).sendAsync();
        }
        producer.flush();
    }

    /** The text "prefix:number:" with 80 more bytes. */
    static byte[] text(String prefix, int number) {
        return (prefix + ":" + number + ":" + "0123456789".repeat(8)).getBytes();
    }

    static String prefix(byte[] text) {
        return new String(text).split(":")[0];
    }

    static int number(byte[] text) {
        return Integer.parseInt(new String(text).split(":")[1]);
    }

    /** Runs a request to the administration again while the topic moves, or the broker is not there. */
    static <T> T asked(Callable<T> request) throws Exception {
        long end = System.nanoTime() + PATIENCE * 1_000_000_000L;
        while (true) {
            try {
                return request.call();
            } catch (PulsarAdminException.ConflictException error) {
                return null; // it was done, and the answer got lost
            } catch (PulsarAdminException | PulsarClientException error) {
                if (System.nanoTime() > end) {
                    throw error;
                }
                Thread.sleep(100);
            }
        }
    }

    /** Waits until the condition holds. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + PATIENCE * 1_000_000_000L;
        while (!asked(condition)) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("not reached: " + what);
            }
            Thread.sleep(50);
        }
    }

    /** Waits until nothing of subscription "s" is left to acknowledge. */
    void untilBacklogIsZero(String topic) throws Exception {
        until("backlog 0 of " + topic,
                () -> admin.topics().getStats(topic).getSubscriptions().get("s").getMsgBacklog() == 0);
    }

    @Override
    public void close() throws PulsarClientException {
        admin.close();
        client.shutdown();
        other.shutdown();
        calm.shutdown();
    }
}
