import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.apache.pulsar.client.admin.LongRunningProcessStatus;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;

/** Topics that are read in order: positions, chunks, sequence ids, readers, compaction. */
class Logs {
    /**
     * A consumer that acknowledges cumulatively in the middle of batches closes and comes back, again and again. Without a group
     * time: this client calls grouped acknowledgements done before it has sent them.
     */
    static String cumulative(Setting setting) throws Exception {
        int count = 2000;
        String topic = setting.topic("cumulative");
        Tally tally = new Tally(1, count, true);
        MessageId confirmed = null;
        int openings = 0;
        int unconfirmed = 0;
        int again = 0;
        Tally.Threads threads = new Tally.Threads();
        Producer<byte[]> producer = Setting.producer(setting.other, topic).batchingMaxMessages(10)
                .batchingMaxPublishDelay(50, TimeUnit.MILLISECONDS).create();
        threads.start(() -> {
            setting.sendNumbers(producer, "c", count);
            producer.close();
            return null;
        });
        long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
        while (!tally.complete() && System.nanoTime() < end) {
            openings++;
            try (Consumer<byte[]> consumer = Setting.asked(Setting.consumer(setting.client, topic, SubscriptionType.Exclusive)
                    .enableBatchIndexAcknowledgment(true).isAckReceiptEnabled(true)
                    .acknowledgmentGroupTime(0, TimeUnit.SECONDS)::subscribe)) {
                Message<byte[]> last = null;
                for (int received = 0; received < 137; received++) {
                    Message<byte[]> message = consumer.receive(500, TimeUnit.MILLISECONDS);
                    if (message == null) {
                        break;
                    }
                    if (confirmed != null && message.getMessageId().compareTo(confirmed) <= 0) {
                        again++;
                    }
                    tally.add("c", Setting.number(message.getData()));
                    last = message;
                }
                if (last != null) {
                    try {
                        consumer.acknowledgeCumulativeAsync(last.getMessageId()).get(10, TimeUnit.SECONDS);
                        confirmed = last.getMessageId();
                    } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException error) {
                        unconfirmed++; // the connection ended before the broker had answered
                    }
                }
            }
        }
        threads.join();
        tally.check();
        return tally.figures() + ", " + openings + " openings, " + unconfirmed + " acknowledgements not confirmed, "
                + again + " confirmed and again";
    }

    /** Two producers send 50 messages of 1 MB each, in chunks that mix. */
    static String chunks(Setting setting) throws Exception {
        int each = 50;
        int length = 1_000_000;
        String topic = setting.topic("chunks");
        Tally tally = new Tally(2, each, true);
        Tally.Threads threads = new Tally.Threads();
        try (Consumer<byte[]> consumer = Setting.asked(Setting.consumer(setting.client, topic, SubscriptionType.Exclusive)
                .receiverQueueSize(100).maxPendingChunkedMessage(20)::subscribe)) {
            for (String name : new String[] {"x", "y"}) {
                Producer<byte[]> producer = Setting.producer(name.equals("x") ? setting.client : setting.other, topic)
                        .enableBatching(false).enableChunking(true).chunkMaxMessageSize(60_000).maxPendingMessages(100).create();
                threads.start(() -> {
                    for (int number = 0; number < each; number++) {
                        setting.rounds.await(number, each);
                        byte[] value = bytes(name, number, length);
                        producer.newMessage().key(name).property("number", String.valueOf(number)).value(value).sendAsync();
                    }
                    producer.flush();
                    producer.close();
                    return null;
                });
            }
            long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
            while (!tally.complete() && System.nanoTime() < end) {
                Message<byte[]> message = consumer.receive(100, TimeUnit.MILLISECONDS);
                if (message != null) {
                    int number = Integer.parseInt(message.getProperty("number"));
                    if (crc(message.getData()) != crc(bytes(message.getKey(), number, length))) {
                        throw new IllegalStateException("other bytes in " + message.getKey() + number);
                    }
                    tally.add(message.getKey(), number);
                    consumer.acknowledgeAsync(message);
                }
            }
            threads.join();
            tally.check();
        }
        return tally.figures();
    }

    private static byte[] bytes(String name, int number, int length) {
        byte[] value = new byte[length];
        new Random(name.hashCode() * 1000L + number).nextBytes(value);
        return value;
    }

    private static long crc(byte[] value) {
        CRC32 crc = new CRC32();
        crc.update(value);
        return crc.getValue();
    }

    /** A producer closes after each 250 messages, comes back under its name, and sends the last 100 again. */
    static String deduplication(Setting setting) throws Exception {
        int count = 2000;
        String topic = setting.deduplicated("numbered");
        int sent = 0;
        while (sent < count) {
            try (Producer<byte[]> producer = Setting.asked(Setting.producer(setting.client, topic).producerName("d")::create)) {
                if (producer.getLastSequenceId() != sent - 1) {
                    throw new IllegalStateException("the last sequence id is " + producer.getLastSequenceId() + " after " + sent);
                }
                for (int number = Math.max(0, sent - 100); number < sent; number++) {
                    producer.newMessage().sequenceId(number).value(Setting.text("d", number)).sendAsync();
                }
                producer.flush();
                for (int end = sent + 250; sent < end; sent++) {
                    setting.rounds.await(sent, count);
                    producer.newMessage().sequenceId(sent).value(Setting.text("d", sent)).sendAsync();
                }
                producer.flush();
            }
        }
        return eachOnce(setting, topic, count);
    }

    private static String eachOnce(Setting setting, String topic, int count) throws Exception {
        try (Reader<byte[]> reader = Setting.asked(setting.other.newReader().topic(topic).startMessageId(MessageId.earliest)::create)) {
            List<Message<byte[]>> found = readAll(reader);
            for (int number = 0; number < found.size(); number++) {
                if (Setting.number(found.get(number).getData()) != number) {
                    throw new IllegalStateException(Setting.number(found.get(number).getData()) + " as " + number);
                }
            }
            if (found.size() != count) {
                throw new IllegalStateException(found.size() + " of " + count);
            }
        }
        return count + " messages";
    }

    private static List<Message<byte[]>> readAll(Reader<byte[]> reader) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        while (asked(reader::hasMessageAvailable)) {
            Message<byte[]> message = reader.readNext(20, TimeUnit.SECONDS);
            if (message == null) {
                throw new IllegalStateException("a message is available, and does not come after " + found.size());
            }
            found.add(message);
        }
        return found;
    }

    private static <T> T asked(Callable<T> request) throws Exception {
        return Setting.asked(request);
    }

    /** A reader goes to ids and times while the topic moves. */
    static String seeks(Setting setting) throws Exception {
        int count = 500;
        int seeks = 40;
        String topic = setting.deduplicated("seeks");
        try (Producer<byte[]> producer = Setting.asked(Setting.producer(setting.client, topic).batchingMaxMessages(7)::create)) {
            for (int number = 0; number < count; number++) {
                producer.sendAsync(Setting.text("s", number));
                if (number % 50 == 49) {
                    producer.flush();
                    Thread.sleep(20); // seeks by time have several times to go to
                }
            }
            producer.flush();
        }
        List<Message<byte[]>> all;
        try (Reader<byte[]> reader = Setting.asked(setting.client.newReader().topic(topic).startMessageId(MessageId.earliest)::create)) {
            all = readAll(reader);
        }
        Random random = new Random(7);
        int again = 0;
        try (Reader<byte[]> reader = Setting.asked(setting.other.newReader().topic(topic).startMessageId(MessageId.earliest)
                .startMessageIdInclusive()::create)) {
            for (int seek = 0; seek < seeks; seek++) {
                setting.rounds.await(seek, seeks);
                int target = random.nextInt(all.size());
                int tries = 0;
                while (!found(reader, all, target, seek % 2 == 1)) {
                    again++;
                    if (++tries == 3) {
                        throw new IllegalStateException("seek " + seek + " did not lead to " + target);
                    }
                }
            }
        }
        return seeks + " seeks in " + count + " messages, " + again + " again";
    }

    /**
     * Seeks, and tells whether the next five messages come. After a seek by time this client forgets where it is if the topic
     * moves before the first message.
     */
    private static boolean found(Reader<byte[]> reader, List<Message<byte[]>> all, int target, boolean byTime) throws Exception {
        long time = all.get(target).getPublishTime();
        MessageId id = all.get(target).getMessageId();
        int first = target;
        while (byTime && first > 0 && all.get(first - 1).getPublishTime() >= time) {
            first--;
        }
        asked(() -> {
            if (byTime) {
                reader.seek(time);
            } else {
                reader.seek(id);
            }
            return null;
        });
        if (!asked(reader::hasMessageAvailable)) {
            return false;
        }
        for (Message<byte[]> wanted : all.subList(first, Math.min(first + 5, all.size()))) {
            Message<byte[]> message = reader.readNext(20, TimeUnit.SECONDS);
            if (message == null || Setting.number(message.getData()) != Setting.number(wanted.getData())) {
                return false;
            }
        }
        return true;
    }

    /** A table view and a compacted reader of a topic that is compacted twice, with keys that are removed. */
    static String table(Setting setting) throws Exception {
        int keys = 100;
        int count = 2000;
        String topic = setting.topic("table");
        Map<String, String> wanted = new HashMap<>();
        try (Producer<byte[]> producer = Setting.producer(setting.client, topic).create();
                TableView<byte[]> early = asked(setting.other.newTableView(Schema.BYTES).topic(topic)::create)) {
            for (int number = 0; number < count; number++) {
                setting.rounds.await(number, count);
                String key = "k" + number * 31 % keys;
                if (number % 17 == 3) {
                    wanted.remove(key);
                    producer.newMessage().key(key).value(null).sendAsync();
                } else {
                    wanted.put(key, "v" + number);
                    producer.newMessage().key(key).value(("v" + number).getBytes()).sendAsync();
                }
                if (number == count / 2 || number == count * 9 / 10) {
                    producer.flush();
                    compact(setting, topic);
                }
            }
            producer.flush();
            Setting.until("the values of an early table view", () -> wanted.equals(contents(early)));
        }
        compact(setting, topic);
        try (TableView<byte[]> late = asked(setting.client.newTableView(Schema.BYTES).topic(topic)::create)) {
            Setting.until("the values of a late table view", () -> wanted.equals(contents(late)));
        }
        Map<String, String> read = new HashMap<>();
        try (Reader<byte[]> reader = Setting.asked(setting.client.newReader().topic(topic).startMessageId(MessageId.earliest)
                .readCompacted(true)::create)) {
            List<Message<byte[]>> found = readAll(reader);
            found.forEach(message -> read.put(message.getKey(), new String(message.getData())));
            if (found.size() != wanted.size() || !read.equals(wanted)) {
                throw new IllegalStateException(found.size() + " messages of " + wanted.size() + " keys");
            }
        }
        return wanted.size() + " keys of " + count + " messages";
    }

    private static Map<String, String> contents(TableView<byte[]> view) {
        Map<String, String> found = new HashMap<>();
        view.forEach((key, value) -> found.put(key, new String(value)));
        return found;
    }

    /** Compacts until one time it ends well: an unload ends a compaction. */
    private static void compact(Setting setting, String topic) throws Exception {
        while (true) {
            asked(() -> {
                setting.admin.topics().triggerCompaction(topic);
                return null;
            });
            LongRunningProcessStatus.Status status;
            do {
                Thread.sleep(50);
                status = asked(() -> setting.admin.topics().compactionStatus(topic)).status;
            } while (status == LongRunningProcessStatus.Status.RUNNING);
            if (status == LongRunningProcessStatus.Status.SUCCESS) {
                return;
            }
        }
    }

    static String partitionedReader(Setting setting) throws Exception {
        int count = 1500;
        String topic = setting.partitioned("read-parts", 3);
        Tally tally = new Tally(1, count, false);
        try (Producer<byte[]> producer = Setting.producer(setting.client, topic).create();
                Reader<byte[]> reader = setting.other.newReader().topic(topic).startMessageId(MessageId.earliest).create()) {
            Tally.Threads threads = new Tally.Threads();
            threads.start(() -> {
                setting.sendNumbers(producer, "r", count);
                return null;
            });
            long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
            while (!tally.complete() && System.nanoTime() < end) {
                Message<byte[]> message = reader.readNext(200, TimeUnit.MILLISECONDS);
                if (message != null) {
                    tally.add("r", Setting.number(message.getData()));
                }
            }
            threads.join();
            tally.check();
        }
        try (Reader<byte[]> reader = Setting.asked(setting.client.newReader().topic(topic).startMessageId(MessageId.earliest)::create)) {
            Tally again = new Tally(1, count, false);
            readAll(reader).forEach(message -> again.add("r", Setting.number(message.getData())));
            again.check();
        }
        return tally.figures();
    }
}
