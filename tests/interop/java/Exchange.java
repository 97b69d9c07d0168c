import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.impl.auth.AuthenticationBasic;
import org.apache.pulsar.client.impl.auth.oauth2.AuthenticationFactoryOAuth2;

/**
 * Exchanges messages with a broker, with one client for each line of standard input.
 *
 * <p>A line has the options of a client as name=value, separated by tabs. The answer has the name of the line, "ok"
 * or "refused", and the reason, separated by tabs.
 */
public class Exchange {
    public static void main(String[] arguments) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, String> options = new HashMap<>();
            for (String option : line.split("\t")) {
                String[] parts = option.split("=", 2);
                options.put(parts[0], parts[1]);
            }
            threads.execute(() -> answer(options));
        }
        threads.shutdown();
        threads.awaitTermination(10, TimeUnit.MINUTES);
        System.exit(0);
    }

    private static void answer(Map<String, String> options) {
        String outcome = "ok\t";
        try {
            exchange(options);
        } catch (Throwable error) {
            outcome = "refused\t" + error.toString().lines().findFirst().orElse("");
        }
        synchronized (System.out) {
            System.out.println(options.get("name") + "\t" + outcome);
        }
    }

    private static void exchange(Map<String, String> options) throws Exception {
        int count = Integer.parseInt(options.get("messages"));
        int pause = Integer.parseInt(options.get("pause"));
        try (PulsarClient client = client(options);
                Consumer<byte[]> consumer = client.newConsumer()
                        .topic(options.get("topic")).subscriptionName("s").subscribe();
                Producer<byte[]> producer = client.newProducer().topic(options.get("topic")).create()) {
            for (int number = 0; number < count; number++) {
                producer.sendAsync(Integer.toString(number).getBytes());
                Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
                String value = new String(message.getValue());
                if (!value.equals(Integer.toString(number))) {
                    throw new IllegalStateException("message " + number + " is " + value);
                }
                consumer.acknowledge(message);
                Thread.sleep(pause);
            }
        }
    }

    private static PulsarClient client(Map<String, String> options) throws Exception {
        ClientBuilder builder = PulsarClient.builder()
                .serviceUrl(options.get("url"))
                .operationTimeout(Integer.parseInt(options.get("timeout")), TimeUnit.SECONDS)
                .lookupTimeout(Integer.parseInt(options.get("timeout")), TimeUnit.SECONDS)
                .connectionTimeout(5, TimeUnit.SECONDS)
                .enableTlsHostnameVerification(options.get("verify").equals("all"))
                .allowTlsInsecureConnection(options.get("verify").equals("nothing"));
        if (options.containsKey("trust")) {
            builder.tlsTrustCertsFilePath(options.get("trust"));
        }
        String certificate = options.get("certificate");
        if (certificate != null && !options.get("method").equals("tls")) {
            builder.tlsCertificateFilePath(certificate).tlsKeyFilePath(options.get("key"));
        }
        switch (options.get("method")) {
            case "token" -> builder.authentication(AuthenticationFactory.token(() -> read(options.get("token"))));
            case "basic" -> {
                AuthenticationBasic basic = new AuthenticationBasic();
                basic.configure(Map.of("userId", options.get("user"), "password", options.get("password")));
                builder.authentication(basic);
            }
            case "tls" -> builder.authentication(AuthenticationFactory.TLS(certificate, options.get("key")));
            case "oauth2" -> builder.authentication(AuthenticationFactoryOAuth2.clientCredentials(
                    URI.create(options.get("issuer")).toURL(),
                    Path.of(options.get("credentials")).toUri().toURL(),
                    null));
            default -> { }
        }
        return builder.build();
    }

    private static String read(String file) {
        try {
            return Files.readString(Path.of(file)).strip();
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
