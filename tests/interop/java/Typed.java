package interop;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import com.google.protobuf.GeneratedMessageV3;
import com.google.protobuf.Message.Builder;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.TextFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.reflect.AvroDefault;
import org.apache.avro.reflect.AvroSchema;
import org.apache.avro.reflect.Nullable;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * Sends and receives typed messages, as each line of standard input says.
 *
 * <p>A line is a JSON object. "do" is "send", with the "values" to send, or "receive", with their "count"; both name the
 * "url", the "topic" and the "schema". The answer is the word "answer", a tab, and a JSON object. It has the "id" of the
 * line, and the "values", or the class and text of the "error". A schema is an object with a "type", and the "model", a
 * class, where the type needs one. Values of primitive types are text as Java writes it, bytes hexadecimal, and dates
 * milliseconds.
 */
public class Typed {
    private static final ObjectMapper JSON = new ObjectMapper()
            .registerModule(new JavaTimeModule())
            .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
            .enable(DeserializationFeature.USE_LONG_FOR_INTS);

    /** A field of each type that Avro and JSON have in common. */
    public static class Plain {
        public boolean flag;
        public int small;
        public long large;
        public float single;
        public double wide;
        public String text;
        public byte[] raw;
        @Nullable public Integer maybe;
        public Color color;
        public Inner inner;
        public List<Inner> inners;
        public Map<String, Long> counts;
        @AvroSchema("[\"null\", \"string\", \"long\"]") public Object choice;
        @AvroSchema("{\"type\": \"bytes\", \"logicalType\": \"decimal\", \"precision\": 9, \"scale\": 2}")
        public BigDecimal price;
        @AvroSchema("{\"type\": \"string\", \"logicalType\": \"uuid\"}") public UUID unique;
    }

    /** Dates and times, too: this client's JSON has them as arrays and as seconds. */
    public static class Dated extends Plain {
        @AvroSchema("{\"type\": \"int\", \"logicalType\": \"date\"}") public LocalDate day;
        @AvroSchema("{\"type\": \"int\", \"logicalType\": \"time-millis\"}") public LocalTime coarse;
        @AvroSchema("{\"type\": \"long\", \"logicalType\": \"time-micros\"}") public LocalTime fine;
        @AvroSchema("{\"type\": \"long\", \"logicalType\": \"timestamp-millis\"}") public Instant moment;
        @AvroSchema("{\"type\": \"long\", \"logicalType\": \"timestamp-micros\"}") public Instant instant;
    }

    /** The names of colours. */
    public enum Color { RED, GREEN }

    /** A record within a record. */
    public static class Inner {
        public String name;
        public int count;
    }

    /** The first version of an order. */
    public static class OrderOne {
        public String id;
        @AvroDefault("7") public int amount = 7;
    }

    /** An order with two new fields, and without an old one; each of them has a default. */
    public static class OrderTwo {
        public String id;
        public String note;
        @AvroDefault("1.5") public double weight = 1.5;
    }

    /** An order that neither reads the other ones nor is read by them. */
    public static class OrderOther {
        public long id;
        public boolean paid;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream output = System.out;
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            answer.set("id", request.get("id"));
            PulsarClient client = PulsarClient.builder().serviceUrl(request.get("url").asText())
                    .operationTimeout(60, TimeUnit.SECONDS).build();
            try {
                if (request.get("do").asText().equals("send")) {
                    send(client, request);
                } else {
                    answer.set("values", receive(client, request));
                }
            } catch (Throwable error) {
                answer.put("error", error.getClass().getSimpleName()).put("text", error.toString());
            }
            client.closeAsync(); // to wait for the end of its threads would take two seconds
            output.println("answer\t" + JSON.writeValueAsString(answer));
        }
        System.exit(0);
    }

    private static void send(PulsarClient client, JsonNode request) throws Exception {
        JsonNode spec = request.get("schema");
        Schema<Object> schema = schema(spec);
        try (Producer<Object> producer = client.newProducer(schema).topic(request.get("topic").asText())
                .batchingMaxPublishDelay(1, TimeUnit.MILLISECONDS).create()) {
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (JsonNode given : request.get("values")) {
                sent.add(producer.newMessage().value(value(spec, given)).sendAsync());
            }
            for (CompletableFuture<MessageId> each : sent) {
                each.get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static ArrayNode receive(PulsarClient client, JsonNode request) throws Exception {
        ArrayNode values = JSON.createArrayNode();
        try (Reader<Object> reader = client.newReader(schema(request.get("schema")))
                .topic(request.get("topic").asText()).startMessageId(MessageId.earliest).create()) {
            for (int number = request.get("count").asInt(); number > 0; number--) {
                Message<Object> message = reader.readNext(60, TimeUnit.SECONDS);
                if (message == null) {
                    throw new TimeoutException(number + " messages are missing");
                }
                values.add(shown(message.getValue()));
            }
        }
        return values;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Schema<Object> schema(JsonNode spec) throws Exception {
        Schema<?> schema = switch (spec.get("type").asText()) {
            case "NONE" -> Schema.BYTES;
            case "STRING" -> Schema.STRING;
            case "BOOLEAN" -> Schema.BOOL;
            case "INT8" -> Schema.INT8;
            case "INT16" -> Schema.INT16;
            case "INT32" -> Schema.INT32;
            case "INT64" -> Schema.INT64;
            case "FLOAT" -> Schema.FLOAT;
            case "DOUBLE" -> Schema.DOUBLE;
            case "DATE" -> Schema.DATE;
            case "TIME" -> Schema.TIME;
            case "TIMESTAMP" -> Schema.TIMESTAMP;
            case "INSTANT" -> Schema.INSTANT;
            case "LOCAL_DATE" -> Schema.LOCAL_DATE;
            case "LOCAL_TIME" -> Schema.LOCAL_TIME;
            case "LOCAL_DATE_TIME" -> Schema.LOCAL_DATE_TIME;
            case "AVRO" -> Schema.AVRO(definition(spec));
            case "JSON" -> Schema.JSON(definition(spec));
            case "PROTOBUF" -> Schema.PROTOBUF((Class<GeneratedMessageV3>) model(spec));
            case "PROTOBUF_NATIVE" -> Schema.PROTOBUF_NATIVE((Class<GeneratedMessageV3>) model(spec));
            case "KEY_VALUE" -> Schema.KeyValue(schema(spec.get("key")), schema(spec.get("value")),
                    KeyValueEncodingType.valueOf(spec.get("encoding").asText()));
            case "AUTO_CONSUME" -> Schema.AUTO_CONSUME();
            case "AUTO_PUBLISH" -> Schema.AUTO_PRODUCE_BYTES();
            default -> throw new IllegalArgumentException(spec.toString());
        };
        return (Schema<Object>) schema;
    }

    private static Class<?> model(JsonNode spec) throws ClassNotFoundException {
        String name = spec.get("model").asText();
        return Class.forName(name.contains(".") ? name : "interop.Typed$" + name);
    }

    @SuppressWarnings("unchecked")
    private static SchemaDefinition<Object> definition(JsonNode spec) throws ClassNotFoundException {
        return SchemaDefinition.<Object>builder().withPojo((Class<Object>) model(spec))
                .withJSR310ConversionEnabled(true).build();
    }

    private static Object value(JsonNode spec, JsonNode given) throws Exception {
        if (given.isNull()) {
            return null;
        }
        String text = given.asText();
        return switch (spec.get("type").asText()) {
            case "NONE", "AUTO_PUBLISH" -> HexFormat.of().parseHex(text);
            case "STRING" -> text;
            case "BOOLEAN" -> Boolean.valueOf(text);
            case "INT8" -> Byte.valueOf(text);
            case "INT16" -> Short.valueOf(text);
            case "INT32" -> Integer.valueOf(text);
            case "INT64" -> Long.valueOf(text);
            case "FLOAT" -> Float.valueOf(text);
            case "DOUBLE" -> Double.valueOf(text);
            case "DATE" -> new Date(Long.parseLong(text));
            case "TIME" -> new Time(Long.parseLong(text));
            case "TIMESTAMP" -> new Timestamp(Long.parseLong(text));
            case "INSTANT" -> Instant.parse(text);
            case "LOCAL_DATE" -> LocalDate.parse(text);
            case "LOCAL_TIME" -> LocalTime.parse(text);
            case "LOCAL_DATE_TIME" -> LocalDateTime.parse(text);
            case "PROTOBUF", "PROTOBUF_NATIVE" -> {
                Builder builder = (Builder) model(spec).getMethod("newBuilder").invoke(null);
                TextFormat.merge(text, builder);
                yield builder.build();
            }
            case "KEY_VALUE" -> new KeyValue<>(
                    value(spec.get("key"), given.get(0)), value(spec.get("value"), given.get(1)));
            default -> JSON.treeToValue(given, model(spec));
        };
    }

    /** Returns the JSON of a value, which may be one of any schema, and one of the schema AUTO_CONSUME. */
    private static JsonNode shown(Object value) {
        if (value instanceof GenericRecord record) {
            return shown(record.getNativeObject());
        } else if (value instanceof KeyValue<?, ?> pair) {
            return JSON.createArrayNode().add(shown(pair.getKey())).add(shown(pair.getValue()));
        } else if (value instanceof byte[] data) {
            return JSON.getNodeFactory().textNode(HexFormat.of().formatHex(data));
        } else if (value instanceof ByteBuffer buffer) {
            byte[] data = new byte[buffer.remaining()];
            buffer.duplicate().get(data);
            return shown(data);
        } else if (value instanceof MessageOrBuilder message) {
            return JSON.getNodeFactory().textNode(TextFormat.printer().shortDebugString(message));
        } else if (value instanceof Date date) {
            return JSON.getNodeFactory().textNode(Long.toString(date.getTime()));
        } else if (value instanceof IndexedRecord record) {
            ObjectNode object = JSON.createObjectNode();
            record.getSchema().getFields().forEach(field -> object.set(field.name(), shown(record.get(field.pos()))));
            return object;
        } else if (value instanceof Map<?, ?> map) {
            ObjectNode object = JSON.createObjectNode();
            map.forEach((key, each) -> object.set(key.toString(), shown(each)));
            return object;
        } else if (value instanceof Collection<?> collection) {
            ArrayNode array = JSON.createArrayNode();
            collection.forEach(each -> array.add(shown(each)));
            return array;
        } else if (value instanceof JsonNode || value != null && value.getClass().getName().startsWith("interop")) {
            return JSON.valueToTree(value);
        }
        return value == null ? JSON.nullNode() : JSON.getNodeFactory().textNode(value.toString());
    }
}
