import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * Runs cases of transactions with a broker. Arguments: the service URL, the prefix of topics, the names of cases.
 *
 * <p>A line of output has a name and what the case observed, separated by a tab. A case that fails says "failed" and
 * the reason.
 */
public class Transactions {
    private static PulsarClient client;
    private static String topic;
    private static List<String> seen;

    public static void main(String[] arguments) throws Exception {
        client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true)
                .operationTimeout(20, TimeUnit.SECONDS).build();
        for (int place = 2; place < arguments.length; place++) {
            String name = arguments[place];
            topic = arguments[1] + "-" + name;
            seen = new ArrayList<>();
            String outcome;
            try {
                run(name);
                outcome = String.join(" ", seen);
            } catch (Throwable error) {
                outcome = "failed: " + error.toString().replace('\n', ' ');
            }
            System.out.println("case\t" + name + "\t" + outcome);
        }
        client.close();
        System.exit(0);
    }

    private static void run(String name) throws Exception {
        switch (name) {
            case "commit" -> commit();
            case "abort" -> abort();
            case "order" -> order();
            case "timeout" -> timeout();
            case "conflict" -> conflict();
            case "cumulative" -> cumulative();
            case "cumulative-abort" -> cumulativeAbort();
            case "exclusive-abort" -> exclusiveAbort();
            case "batch" -> batch();
            case "batch-index" -> batchIndex();
            case "chunks" -> chunks();
            case "partitions" -> partitions();
            case "pipeline" -> pipeline();
            case "ended" -> ended();
            case "reader" -> reader();
            default -> throw new IllegalArgumentException(name);
        }
    }

    private static Transaction begin(int seconds) throws Exception {
        return client.newTransaction().withTransactionTimeout(seconds, TimeUnit.SECONDS).build().get();
    }

    private static Producer<byte[]> producer(String name) throws Exception {
        return client.newProducer().topic(name).sendTimeout(0, TimeUnit.SECONDS).enableBatching(false).create();
    }

    private static ConsumerBuilder<byte[]> consumer(SubscriptionType kind) {
        return client.newConsumer().topic(topic).subscriptionName("sub").subscriptionType(kind)
                .enableBatchIndexAcknowledgment(true)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
    }

    /** Receives up to {@code most} messages, until none comes for a while. */
    private static List<Message<byte[]>> receive(Consumer<byte[]> consumer, int most) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        while (found.size() < most) {
            Message<byte[]> message = consumer.receive(found.isEmpty() ? 1200 : 600, TimeUnit.MILLISECONDS);
            if (message == null) {
                break;
            }
            found.add(message);
        }
        return found;
    }

    private static void see(String what, List<Message<byte[]>> messages) {
        StringBuilder text = new StringBuilder(what + "=");
        for (Message<byte[]> message : messages) {
            text.append(text.charAt(text.length() - 1) == '=' ? "" : ",").append(new String(message.getData()));
        }
        seen.add(text.toString());
    }

    /** Notes the class of the error with which this ends, or "done". */
    private static void see(String what, CompletableFuture<?> future) throws Exception {
        try {
            future.get(30, TimeUnit.SECONDS);
            seen.add(what + "=done");
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            while (cause.getCause() != null && cause instanceof java.util.concurrent.CompletionException) {
                cause = cause.getCause();
            }
            seen.add(what + "=" + cause.getClass().getSimpleName());
        }
    }

    private interface Steps {
        void run(Producer<byte[]> producer, Consumer<byte[]> consumer) throws Exception;
    }

    private interface StepsWithOutput {
        void run(Producer<byte[]> producer, Consumer<byte[]> consumer, Producer<byte[]> out, Consumer<byte[]> result)
                throws Exception;
    }

    private interface StepsOfMessages {
        void run(Consumer<byte[]> consumer, List<Message<byte[]>> messages) throws Exception;
    }

    /** Runs steps with a producer and a consumer of the topic. */
    private static void open(SubscriptionType kind, Steps steps) throws Exception {
        try (Producer<byte[]> producer = producer(topic); Consumer<byte[]> consumer = consumer(kind).subscribe()) {
            steps.run(producer, consumer);
        }
    }

    /** Runs steps with a producer and a consumer of the topic, and with those of its output. */
    private static void openWithOutput(StepsWithOutput steps) throws Exception {
        open(SubscriptionType.Shared, (producer, consumer) -> {
            try (Producer<byte[]> out = producer(topic + "-out");
                    Consumer<byte[]> result = client.newConsumer().topic(topic + "-out").subscriptionName("sub")
                            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
                steps.run(producer, consumer, out, result);
            }
        });
    }

    /** Sends "0", "1" and so on, and runs steps with an exclusive consumer that has received them. */
    private static void receiveNumbers(int count, StepsOfMessages steps) throws Exception {
        open(SubscriptionType.Exclusive, (producer, consumer) -> {
            for (int number = 0; number < count; number++) {
                producer.send(Integer.toString(number).getBytes());
            }
            steps.run(consumer, receive(consumer, count));
        });
    }

    private static void commit() throws Exception {
        open(SubscriptionType.Shared, (producer, consumer) -> {
            Transaction transaction = begin(60);
            producer.newMessage(transaction).value("inside".getBytes()).send();
            see("before", receive(consumer, 1));
            see("commit", transaction.commit());
            see("after", receive(consumer, 2));
        });
    }

    private static void abort() throws Exception {
        openWithOutput((producer, consumer, out, result) -> {
            producer.send("input".getBytes());
            Message<byte[]> message = receive(consumer, 1).get(0);
            Transaction transaction = begin(60);
            out.newMessage(transaction).value("output".getBytes()).send();
            consumer.acknowledgeAsync(message.getMessageId(), transaction).get();
            see("abort", transaction.abort());
            List<Message<byte[]>> again = receive(consumer, 1);
            see("again", again);
            seen.add("count=" + again.get(0).getRedeliveryCount());
            out.send("plain".getBytes());
            see("output", receive(result, 2));
        });
    }

    private static void order() throws Exception {
        open(SubscriptionType.Exclusive, (producer, consumer) -> {
            Transaction first = begin(60);
            Transaction second = begin(60);
            Transaction third = begin(60);
            producer.newMessage(first).value("1".getBytes()).send();
            producer.newMessage(second).value("2".getBytes()).send();
            producer.newMessage(third).value("3".getBytes()).send();
            producer.send("4".getBytes());
            see("third", third.commit());
            see("second", second.abort());
            see("before", receive(consumer, 1));
            see("first", first.commit());
            see("after", receive(consumer, 4));
        });
    }

    private static void timeout() throws Exception {
        open(SubscriptionType.Shared, (producer, consumer) -> {
            producer.send("input".getBytes());
            Message<byte[]> message = receive(consumer, 1).get(0);
            Transaction transaction = begin(2);
            producer.newMessage(transaction).value("inside".getBytes()).send();
            consumer.acknowledgeAsync(message.getMessageId(), transaction).get();
            producer.send("after".getBytes());
            List<Message<byte[]>> found = new ArrayList<>();
            found.add(consumer.receive(20, TimeUnit.SECONDS));
            found.add(consumer.receive(20, TimeUnit.SECONDS));
            found.sort((one, other) -> new String(one.getData()).compareTo(new String(other.getData())));
            see("again", found);
            try {
                transaction.commit().get();
                seen.add("commit=done");
            } catch (ExecutionException error) {
                seen.add("commit=refused");
            }
        });
    }

    private static void conflict() throws Exception {
        open(SubscriptionType.Shared, (producer, consumer) -> {
            producer.send("input".getBytes());
            Message<byte[]> message = receive(consumer, 1).get(0);
            Transaction first = begin(60);
            Transaction second = begin(60);
            see("first", consumer.acknowledgeAsync(message.getMessageId(), first));
            see("second", consumer.acknowledgeAsync(message.getMessageId(), second));
            see("abort", second.abort());
            see("commit", first.commit());
            Transaction third = begin(60);
            see("third", consumer.acknowledgeAsync(message.getMessageId(), third));
            see("abort", third.abort());
            consumer.redeliverUnacknowledgedMessages();
            see("left", receive(consumer, 1));
        });
    }

    private static void cumulative() throws Exception {
        receiveNumbers(5, (consumer, messages) -> {
            Transaction first = begin(60);
            Transaction second = begin(60);
            MessageId early = messages.get(1).getMessageId();
            MessageId late = messages.get(3).getMessageId();
            see("first", consumer.acknowledgeCumulativeAsync(early, first));
            see("second", consumer.acknowledgeCumulativeAsync(late, second));
            see("abort", second.abort());
            see("late", consumer.acknowledgeCumulativeAsync(late, first));
            see("commit", first.commit());
        });
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe()) {
            see("left", receive(consumer, 5));
        }
    }

    private static void cumulativeAbort() throws Exception {
        receiveNumbers(3, (consumer, messages) -> {
            Transaction transaction = begin(60);
            see("ack", consumer.acknowledgeCumulativeAsync(messages.get(1).getMessageId(), transaction));
            see("abort", transaction.abort());
            see("again", receive(consumer, 3));
        });
    }

    private static void exclusiveAbort() throws Exception {
        receiveNumbers(3, (consumer, messages) -> {
            Transaction transaction = begin(60);
            see("ack", consumer.acknowledgeAsync(messages.get(1).getMessageId(), transaction));
            see("abort", transaction.abort());
            see("again", receive(consumer, 3));
        });
    }

    private static ProducerBuilder<byte[]> batching(int size) {
        return client.newProducer().topic(topic).sendTimeout(0, TimeUnit.SECONDS).enableBatching(true)
                .batchingMaxMessages(size).batchingMaxPublishDelay(10, TimeUnit.SECONDS);
    }

    private static void batch() throws Exception {
        try (Producer<byte[]> producer = batching(10).create();
                Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe()) {
            Transaction committed = begin(60);
            Transaction aborted = begin(60);
            for (int number = 0; number < 4; number++) {
                producer.newMessage(committed).value(("c" + number).getBytes()).sendAsync();
            }
            producer.flush();
            for (int number = 0; number < 4; number++) {
                producer.newMessage(aborted).value(("a" + number).getBytes()).sendAsync();
            }
            producer.flush();
            see("abort", aborted.abort());
            see("commit", committed.commit());
            see("after", receive(consumer, 8));
        }
    }

    private static void batchIndex() throws Exception {
        try (Producer<byte[]> producer = batching(4).create()) {
            for (int number = 0; number < 4; number++) {
                producer.sendAsync(Integer.toString(number).getBytes());
            }
            producer.flush();
            try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe()) {
                List<Message<byte[]>> messages = receive(consumer, 4);
                Transaction committed = begin(60);
                Transaction aborted = begin(60);
                see("one", consumer.acknowledgeAsync(messages.get(0).getMessageId(), committed));
                see("two", consumer.acknowledgeAsync(messages.get(2).getMessageId(), aborted));
                see("commit", committed.commit());
                see("abort", aborted.abort());
            }
            try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe()) {
                see("left", receive(consumer, 4));
            }
        }
    }

    private static void chunks() throws Exception {
        byte[] value = "x".repeat(1000).getBytes();
        try (Producer<byte[]> producer = client.newProducer().topic(topic).sendTimeout(0, TimeUnit.SECONDS)
                        .enableBatching(false).enableChunking(true).chunkMaxMessageSize(100).create();
                Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe()) {
            Transaction transaction = begin(60);
            producer.newMessage(transaction).value(value).send();
            see("before", receive(consumer, 1));
            see("commit", transaction.commit());
            List<Message<byte[]>> found = receive(consumer, 1);
            seen.add("length=" + found.get(0).getData().length);
        }
    }

    private static void partitions() throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic + "-parts")
                        .sendTimeout(0, TimeUnit.SECONDS).enableBatching(false).create();
                Consumer<byte[]> consumer = client.newConsumer().topic(topic + "-parts").subscriptionName("sub")
                        .subscriptionType(SubscriptionType.Shared)
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            Transaction transaction = begin(60);
            for (int number = 0; number < 6; number++) {
                producer.newMessage(transaction).value(Integer.toString(number).getBytes()).send();
            }
            see("before", receive(consumer, 1));
            see("commit", transaction.commit());
            List<Message<byte[]>> found = receive(consumer, 6);
            found.sort((one, other) -> new String(one.getData()).compareTo(new String(other.getData())));
            see("after", found);
            Transaction acks = begin(60);
            for (Message<byte[]> message : found) {
                consumer.acknowledgeAsync(message.getMessageId(), acks).get();
            }
            see("commit", acks.commit());
            consumer.redeliverUnacknowledgedMessages();
            see("left", receive(consumer, 1));
        }
    }

    /** Consume, transform, produce: 20 transactions of 10 messages. */
    private static void pipeline() throws Exception {
        openWithOutput((producer, consumer, out, result) -> {
            for (int number = 0; number < 200; number++) {
                producer.sendAsync(Integer.toString(number).getBytes());
            }
            producer.flush();
            for (int turn = 0; turn < 20; turn++) {
                Transaction transaction = begin(60);
                List<CompletableFuture<?>> all = new ArrayList<>();
                for (Message<byte[]> message : receive(consumer, 10)) {
                    all.add(out.newMessage(transaction).value(message.getData()).sendAsync());
                    all.add(consumer.acknowledgeAsync(message.getMessageId(), transaction));
                }
                CompletableFuture.allOf(all.toArray(new CompletableFuture[0])).get();
                if (turn % 4 == 3) {
                    transaction.abort().get();
                } else {
                    transaction.commit().get();
                }
            }
            seen.add("transformed=" + receive(result, 300).size());
            seen.add("left=" + receive(consumer, 300).size());
        });
    }

    private static void ended() throws Exception {
        try (Producer<byte[]> producer = producer(topic)) {
            Transaction transaction = begin(60);
            producer.newMessage(transaction).value("inside".getBytes()).send();
            see("commit", transaction.commit());
            see("commit", transaction.commit());
            see("abort", transaction.abort());
        }
    }

    private static void reader() throws Exception {
        try (Producer<byte[]> producer = producer(topic)) {
            producer.send("before".getBytes());
            Transaction open = begin(60);
            Transaction aborted = begin(60);
            producer.newMessage(aborted).value("aborted".getBytes()).send();
            see("abort", aborted.abort());
            try (Reader<byte[]> reader = client.newReader().topic(topic).startMessageId(MessageId.earliest).create()) {
                seen.add("first=" + new String(reader.readNext(3, TimeUnit.SECONDS).getData()));
                seen.add("more=" + reader.hasMessageAvailable());
                producer.newMessage(open).value("open".getBytes()).send();
                seen.add("more=" + reader.hasMessageAvailable());
                see("commit", open.commit());
                seen.add("more=" + reader.hasMessageAvailable());
                seen.add("next=" + new String(reader.readNext(3, TimeUnit.SECONDS).getData()));
                seen.add("more=" + reader.hasMessageAvailable());
            }
        }
    }
}
