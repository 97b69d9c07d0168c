import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerCryptoFailureAction;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * Encrypts messages for each topic of its arguments, and prints what it decrypts there.
 *
 * <p>Arguments: the service URL, the folder of the keys, then for each topic "topic=form=key,key…". A form is "single",
 * "batches" or "chunks". A key is a name of files, NAME-public.key and NAME-private.key. The program first receives
 * five messages of the topic by a subscription "java", and prints them. A consumer without a key prints what it gets
 * of the first, unless that is in chunks, which such a consumer cannot join. Then the program sends five.
 */
public class Encrypt {
    private static final int COUNT = 5;

    public static void main(String[] arguments) throws Exception {
        int status = 1;
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            for (String line : Arrays.asList(arguments).subList(2, arguments.length)) {
                String[] parts = line.split("=");
                Set<String> keys = new HashSet<>(Arrays.asList(parts[2].split(",")));
                exchange(client, parts[0], parts[1], keys, new Keys(Path.of(arguments[1])));
            }
            status = 0;
        } finally {
            System.exit(status);
        }
    }

    private static void exchange(PulsarClient client, String topic, String form, Set<String> keys, CryptoKeyReader reader)
            throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("java")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).cryptoKeyReader(reader).subscribe()) {
            for (int number = 0; number < COUNT; number++) {
                Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
                System.out.println("received\t" + topic + "\t" + new String(message.getValue()).substring(0, 2));
                consumer.acknowledge(message);
            }
        }
        if (!form.equals("chunks")) {
            printContext(client, topic);
        }
        ProducerBuilder<byte[]> builder = client.newProducer().topic(topic).cryptoKeyReader(reader)
                .compressionType(CompressionType.LZ4).enableBatching(form.equals("batches"))
                .batchingMaxMessages(COUNT).batchingMaxPublishDelay(10, TimeUnit.SECONDS);
        if (form.equals("chunks")) {
            builder.enableChunking(true).chunkMaxMessageSize(100).compressionType(CompressionType.NONE);
        }
        keys.forEach(builder::addEncryptionKey);
        try (Producer<byte[]> producer = builder.create()) {
            for (int number = 0; number < COUNT; number++) {
                producer.sendAsync(("j" + number).repeat(form.equals("chunks") ? 200 : 1).getBytes());
            }
            producer.flush();
        }
    }

    private static void printContext(PulsarClient client, String topic) throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("without")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .cryptoFailureAction(ConsumerCryptoFailureAction.CONSUME).subscribe()) {
            var context = consumer.receive(60, TimeUnit.SECONDS).getEncryptionCtx().orElseThrow();
            System.out.println("context\t" + topic + "\t" + context.getBatchSize().map(String::valueOf).orElse("none")
                    + "\t" + context.getCompressionType() + "\t" + String.join(",", context.getKeys().keySet().stream()
                    .sorted().toList()));
        }
    }

    private record Keys(Path folder) implements CryptoKeyReader {
        @Override
        public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
            return new EncryptionKeyInfo(read(name + "-public.key"), new HashMap<>(Map.of("name", name)));
        }

        @Override
        public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
            if (!name.equals(metadata.get("name"))) {
                throw new IllegalStateException("metadata " + metadata);
            }
            return new EncryptionKeyInfo(read(name + "-private.key"), metadata);
        }

        private byte[] read(String file) {
            try {
                return Files.readAllBytes(folder.resolve(file));
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }
    }
}
