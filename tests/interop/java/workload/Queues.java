import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionType;

/** Messages for later, letters, topics without storage, and producers that want a topic for themselves. */
class Queues {
    static String delayed(Setting setting) throws Exception {
        int count = 200;
        String topic = setting.topic("delayed");
        Tally tally = new Tally(1, count, false);
        long worst = Long.MAX_VALUE;
        try (Consumer<byte[]> consumer = Setting.asked(Setting.consumer(setting.client, topic, SubscriptionType.Shared)::subscribe);
                Producer<byte[]> producer = Setting.producer(setting.other, topic).create()) {
            Tally.Threads threads = new Tally.Threads();
            threads.start(() -> {
                for (int number = 0; number < count; number++) {
                    setting.rounds.await(number, count);
                    long due = System.currentTimeMillis() + 200 + number * 37 % 2000;
                    producer.newMessage().deliverAt(due).property("due", String.valueOf(due))
                            .value(Setting.text("d", number)).sendAsync();
                }
                producer.flush();
                return null;
            });
            long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
            while (!tally.complete() && System.nanoTime() < end) {
                Message<byte[]> message = consumer.receive(100, TimeUnit.MILLISECONDS);
                if (message != null) {
                    long early = Long.parseLong(message.getProperty("due")) - System.currentTimeMillis();
                    worst = Math.min(worst, -early);
                    tally.add("d", Setting.number(message.getData()));
                    consumer.acknowledgeAsync(message);
                }
            }
            threads.join();
            tally.check();
            if (worst < -Setting.TICK) {
                throw new IllegalStateException(-worst + " ms early");
            }
            setting.untilBacklogIsZero(topic);
        }
        return tally.figures() + ", at least " + worst + " ms late";
    }

    /** One third is acknowledged, one third refused, one third reconsumed later; the last two end as dead letters. */
    static String letters(Setting setting) throws Exception {
        int count = 90;
        String topic = setting.topic("letters");
        Tally taken = new Tally(1, count / 3, false);
        Tally dead = new Tally(1, count / 3 * 2, false);
        Set<Integer> wrong = ConcurrentHashMap.newKeySet();
        try (Producer<byte[]> producer = Setting.producer(setting.other, topic).enableBatching(false).create();
                Consumer<byte[]> letters = Setting.consumer(setting.other, topic + "-dead", SubscriptionType.Shared).subscribe();
                Consumer<byte[]> consumer = Setting.asked(Setting.consumer(setting.client, topic, SubscriptionType.Shared).enableRetry(true)
                        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                        .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic(topic + "-dead")
                                .retryLetterTopic(topic + "-retry").build())::subscribe)) {
            Tally.Threads threads = new Tally.Threads();
            threads.start(() -> {
                setting.sendNumbers(producer, "l", count);
                return null;
            });
            long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
            while (!(taken.complete() && dead.complete()) && System.nanoTime() < end) {
                Message<byte[]> message = consumer.receive(20, TimeUnit.MILLISECONDS);
                if (message != null) {
                    int number = Setting.number(message.getData());
                    switch (number % 3) {
                        case 0 -> {
                            taken.add("l", number / 3);
                            consumer.acknowledgeAsync(message);
                        }
                        case 1 -> consumer.negativeAcknowledge(message);
                        default -> consumer.reconsumeLaterAsync(message, 100, TimeUnit.MILLISECONDS);
                    }
                }
                Message<byte[]> letter = letters.receive(20, TimeUnit.MILLISECONDS);
                if (letter != null) {
                    int number = Setting.number(letter.getData());
                    if (number % 3 == 0) {
                        wrong.add(number);
                    } else {
                        dead.add("l", number / 3 * 2 + number % 3 - 1);
                    }
                    letters.acknowledgeAsync(letter);
                }
            }
            threads.join();
        }
        taken.check();
        dead.check();
        if (!wrong.isEmpty()) {
            throw new IllegalStateException("acknowledged, and dead: " + wrong);
        }
        return taken.figures() + "; dead " + dead.figures();
    }

    static String nonPersistent(Setting setting) throws Exception {
        int count = 500;
        String topic = setting.topic("calm-volatile").replace("persistent:", "non-persistent:");
        Tally tally = new Tally(1, count, false);
        try (Consumer<byte[]> one = setting.calm.newConsumer().topic(topic).subscriptionName("s")
                        .subscriptionType(SubscriptionType.Shared).subscribe();
                Consumer<byte[]> two = setting.calm.newConsumer().topic(topic).subscriptionName("s")
                        .subscriptionType(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = Setting.producer(setting.calm, topic).create()) {
            Tally.Threads threads = new Tally.Threads();
            threads.start(() -> {
                setting.sendNumbers(producer, "n", count);
                return null;
            });
            int ofTwo = 0;
            long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
            while (!tally.complete() && System.nanoTime() < end) {
                for (Consumer<byte[]> consumer : java.util.List.of(one, two)) {
                    Message<byte[]> message = consumer.receive(10, TimeUnit.MILLISECONDS);
                    if (message != null) {
                        ofTwo += consumer == two ? 1 : 0;
                        tally.add("n", Setting.number(message.getData()));
                    }
                }
            }
            threads.join();
            tally.check();
            if (ofTwo == 0 || ofTwo == count) {
                throw new IllegalStateException("the second consumer had " + ofTwo);
            }
        }
        return tally.figures();
    }

    /** A WaitForExclusive producer that is fenced waits again, and sends what it has once it has the topic again. */
    static String access(Setting setting) throws Exception {
        String topic = setting.topic("calm-access");
        try (PulsarClient client = setting.newCalmClient(); // a broker ends its connection when the fenced producer sends
                Consumer<byte[]> consumer = Setting.asked(Setting.consumer(setting.calm, topic, SubscriptionType.Exclusive)::subscribe)) {
            Producer<byte[]> first = exclusive(client, topic, ProducerAccessMode.Exclusive).get();
            first.send(Setting.text("a", 0));
            String busy = failure(exclusive(client, topic, ProducerAccessMode.Exclusive));
            String shared = failure(Setting.producer(client, topic).createAsync());
            CompletableFuture<Producer<byte[]>> waiting =
                    exclusive(client, topic, ProducerAccessMode.WaitForExclusive);
            Thread.sleep(300);
            if (waiting.isDone()) {
                throw new IllegalStateException("two exclusive producers");
            }
            first.close();
            Producer<byte[]> second = waiting.get(20, TimeUnit.SECONDS);
            second.send(Setting.text("a", 1));
            Producer<byte[]> third = exclusive(setting.calm, topic, ProducerAccessMode.ExclusiveWithFencing).get();
            third.send(Setting.text("a", 2));
            CompletableFuture<MessageId> late = second.sendAsync(Setting.text("a", 3));
            Thread.sleep(500);
            if (late.isDone()) {
                throw new IllegalStateException("a producer that waits again has sent");
            }
            third.close();
            late.get(20, TimeUnit.SECONDS);
            second.close();
            for (int number = 0; number < 4; number++) {
                Message<byte[]> message = consumer.receive(20, TimeUnit.SECONDS);
                if (message == null || Setting.number(message.getData()) != number) {
                    throw new IllegalStateException(number + " did not come");
                }
            }
            return busy + " " + shared;
        }
    }

    private static CompletableFuture<Producer<byte[]>> exclusive(PulsarClient client, String topic, ProducerAccessMode mode) {
        return Setting.producer(client, topic).accessMode(mode).createAsync();
    }

    /** Returns the class of the error with which this ends. */
    private static String failure(CompletableFuture<?> future) throws Exception {
        try {
            future.get(20, TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
        throw new IllegalStateException("was not refused");
    }
}
