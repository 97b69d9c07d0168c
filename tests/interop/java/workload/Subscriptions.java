import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageRouter;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TopicMetadata;

/** Several consumers of one subscription: shared, by key, in failover, and of topics that come and go. */
class Subscriptions {
    private static final int KEYS = 200;

    private interface Receipt {
        void take(Consumer<byte[]> consumer, Message<byte[]> message) throws Exception;
    }

    /** Receives until told to end, and closes the consumer; if another thread closes it, or its client, that is the end. */
    private static void receive(Consumer<byte[]> consumer, AtomicBoolean ended, Receipt receipt) throws Exception {
        try {
            while (!ended.get()) {
                Message<byte[]> message = consumer.receive(100, TimeUnit.MILLISECONDS);
                if (message != null) {
                    receipt.take(consumer, message);
                }
            }
        } catch (PulsarClientException.AlreadyClosedException error) {
            return;
        }
        if (consumer.isConnected()) {
            consumer.close();
        }
    }

    static String shared(Setting setting) throws Exception {
        String topic = setting.topic("shared");
        Tally tally = new Tally(3, 2000, false);
        AtomicBoolean ended = new AtomicBoolean();
        AtomicInteger refused = new AtomicInteger();
        AtomicInteger forgotten = new AtomicInteger();
        Set<String> met = ConcurrentHashMap.newKeySet();
        Tally.Threads threads = new Tally.Threads();
        for (int place = 0; place < 4; place++) {
            PulsarClient client = place % 2 == 0 ? setting.client : setting.other;
            Consumer<byte[]> consumer = Setting.asked(Setting.consumer(client, topic, SubscriptionType.Shared)
                    .ackTimeout(2, TimeUnit.SECONDS).negativeAckRedeliveryDelay(300, TimeUnit.MILLISECONDS)
                    .receiverQueueSize(200)::subscribe);
            threads.start(() -> {
                receive(consumer, ended, (from, message) -> {
                    String prefix = Setting.prefix(message.getData());
                    int number = Setting.number(message.getData());
                    boolean first = met.add(prefix + number);
                    if (first && number % 20 == 0) {
                        refused.incrementAndGet();
                        from.negativeAcknowledge(message);
                    } else if (first && number % 50 == 1) {
                        forgotten.incrementAndGet(); // the acknowledgement timeout brings it again
                    } else {
                        tally.add(prefix, number);
                        from.acknowledgeAsync(message);
                    }
                });
                return null;
            });
        }
        Tally.Threads producers = new Tally.Threads();
        CompressionType[] codecs = {CompressionType.LZ4, CompressionType.ZSTD, CompressionType.NONE};
        for (int place = 0; place < 3; place++) {
            String prefix = "p" + place;
            Producer<byte[]> producer = Setting.producer(setting.client, topic).compressionType(codecs[place]).create();
            producers.start(() -> {
                setting.sendNumbers(producer, prefix, 2000);
                producer.close();
                return null;
            });
        }
        producers.join();
        tally.await();
        setting.untilBacklogIsZero(topic);
        ended.set(true);
        threads.join();
        if (refused.get() != 300 || forgotten.get() != 120) {
            throw new IllegalStateException(refused + " refused and " + forgotten + " forgotten");
        }
        return tally.figures();
    }

    static String keyShared(Setting setting) throws Exception {
        String topic = setting.topic("key-shared");
        Tally tally = new Tally(KEYS, 20, true);
        AtomicBoolean ended = new AtomicBoolean();
        Tally.Threads threads = new Tally.Threads();
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int place = 0; place < 3; place++) {
            consumers.add(keyed(place % 2 == 0 ? setting.client : setting.other, topic, KeySharedPolicy.autoSplitHashRange(),
                    tally, ended, threads, ConcurrentHashMap.newKeySet()));
        }
        sendKeys(setting, topic, KEYS * 20, number -> {
            if (number == KEYS * 8) {
                consumers.get(1).close();
            } else if (number == KEYS * 13) {
                keyed(setting.other, topic, KeySharedPolicy.autoSplitHashRange(), tally, ended, threads,
                        ConcurrentHashMap.newKeySet());
            }
        });
        tally.await();
        setting.untilBacklogIsZero(topic);
        ended.set(true);
        threads.join();
        return tally.figures();
    }

    static String sticky(Setting setting) throws Exception {
        String topic = setting.topic("sticky");
        Tally tally = new Tally(KEYS, 10, true);
        AtomicBoolean ended = new AtomicBoolean();
        Tally.Threads threads = new Tally.Threads();
        List<Set<String>> keys = new ArrayList<>();
        for (Range range : new Range[] {Range.of(0, 19999), Range.of(20000, 65535)}) {
            Set<String> own = ConcurrentHashMap.newKeySet();
            keys.add(own);
            keyed(setting.client, topic, KeySharedPolicy.stickyHashRange().ranges(range), tally, ended, threads, own);
        }
        sendKeys(setting, topic, KEYS * 10, number -> { });
        tally.await();
        setting.untilBacklogIsZero(topic);
        ended.set(true);
        threads.join();
        if (keys.get(0).size() + keys.get(1).size() != KEYS || keys.get(0).isEmpty() || keys.get(1).isEmpty()) {
            throw new IllegalStateException("keys of the ranges: " + keys.get(0).size() + " and " + keys.get(1).size());
        }
        return tally.figures() + ", keys " + keys.get(0).size() + " and " + keys.get(1).size();
    }

    private static Consumer<byte[]> keyed(PulsarClient client, String topic, KeySharedPolicy policy, Tally tally,
            AtomicBoolean ended, Tally.Threads threads, Set<String> keys) throws Exception {
        Consumer<byte[]> consumer = Setting.asked(Setting.consumer(client, topic, SubscriptionType.Key_Shared).keySharedPolicy(policy)
                .receiverQueueSize(100)::subscribe);
        threads.start(() -> {
            receive(consumer, ended, (from, message) -> {
                keys.add(message.getKey());
                tally.add(message.getKey(), Setting.number(message.getData()));
                from.acknowledgeAsync(message);
            });
            return null;
        });
        return consumer;
    }

    private interface Before {
        void send(int number) throws Exception;
    }

    private static void sendKeys(Setting setting, String topic, int count, Before before) throws Exception {
        try (Producer<byte[]> producer = Setting.asked(Setting.producer(setting.client, topic).batcherBuilder(BatcherBuilder.KEY_BASED)
                ::create)) {
            for (int number = 0; number < count; number++) {
                setting.rounds.await(number, count);
                before.send(number);
                String key = "k" + number % KEYS;
                producer.newMessage().key(key).value(Setting.text(key, number / KEYS)).sendAsync();
            }
            producer.flush();
        }
    }

    static String failover(Setting setting) throws Exception {
        int count = 3000;
        String topic = setting.partitioned("failover", 4);
        Tally tally = new Tally(4, count / 4, true);
        AtomicBoolean ended = new AtomicBoolean();
        Tally.Threads threads = new Tally.Threads();
        PulsarClient dying = setting.newClient();
        AtomicInteger ofDying = new AtomicInteger();
        for (PulsarClient client : new PulsarClient[] {dying, setting.client}) {
            Consumer<byte[]> consumer = Setting.asked(Setting.consumer(client, topic, SubscriptionType.Failover)
                    .consumerName(client == dying ? "a" : "b")::subscribe);
            threads.start(() -> {
                receive(consumer, ended, (from, message) -> {
                    ofDying.addAndGet(client == dying ? 1 : 0);
                    tally.add(Setting.prefix(message.getData()), Setting.number(message.getData()));
                    from.acknowledgeAsync(message);
                });
                return null;
            });
        }
        ProducerBuilder<byte[]> builder = Setting.producer(setting.other, topic).messageRouter(new MessageRouter() {
            @Override
            public int choosePartition(Message<?> message, TopicMetadata metadata) {
                return Integer.parseInt(message.getKey());
            }
        });
        try (Producer<byte[]> producer = Setting.asked(builder::create)) {
            for (int number = 0; number < count; number++) {
                setting.rounds.await(number, count);
                if (number == count / 2) {
                    dying.shutdown();
                }
                String partition = String.valueOf(number % 4);
                producer.newMessage().key(partition).value(Setting.text(partition, number / 4)).sendAsync();
            }
            producer.flush();
        }
        tally.await();
        for (int partition = 0; partition < 4; partition++) {
            setting.untilBacklogIsZero(topic + "-partition-" + partition);
        }
        ended.set(true);
        threads.join();
        if (ofDying.get() == 0) {
            throw new IllegalStateException("the consumer that ended had no messages");
        }
        return tally.figures() + ", " + ofDying + " of the consumer that ended";
    }

    /** Ten topics of 50 messages appear one after the other; every third is deleted when its messages are acknowledged. */
    static String pattern(Setting setting) throws Exception {
        int topics = 10;
        Tally tally = new Tally(topics, 50, false);
        AtomicBoolean ended = new AtomicBoolean();
        Map<String, AtomicInteger> counts = new ConcurrentHashMap<>();
        Tally.Threads threads = new Tally.Threads();
        Consumer<byte[]> consumer = setting.client.newConsumer().subscriptionName("s")
                .topicsPattern(Pattern.compile("persistent://" + setting.namespace() + "/pattern-.*"))
                .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        threads.start(() -> {
            receive(consumer, ended, (from, message) -> {
                String name = Setting.prefix(message.getData());
                if (tally.add(name, Setting.number(message.getData()))) {
                    counts.computeIfAbsent(name, unused -> new AtomicInteger()).incrementAndGet();
                }
                from.acknowledgeAsync(message);
            });
            return null;
        });
        for (int place = 0; place < topics; place++) {
            setting.rounds.await(place, topics);
            String name = "t" + place;
            String topic = setting.topic("pattern-" + name);
            try (Producer<byte[]> producer = Setting.asked(Setting.producer(setting.other, topic)::create)) {
                for (int number = 0; number < 50; number++) {
                    producer.sendAsync(Setting.text(name, number));
                }
                producer.flush();
            }
            if (place % 3 == 0) {
                threads.start(() -> {
                    Setting.until("50 of " + topic, () -> counts.containsKey(name) && counts.get(name).get() == 50);
                    Setting.asked(() -> {
                        setting.admin.topics().delete(topic, true);
                        return null;
                    });
                    return null;
                });
            }
        }
        tally.await();
        ended.set(true);
        threads.join();
        return tally.figures();
    }
}
