// Sends and receives typed messages, as each line of standard input says.
//
// A line is a JSON object. "do" is "send", with the "values" to send, or "receive", with their "count"; both name the
// "url", the "topic" and the "schema". The answer is the word "answer", a tab, and a JSON object. It has the "id" of
// the line, and the "values", or the "error" and its "text". A schema is an object with a "type", and the "definition"
// or the "model" where the type needs one. Values of primitive types are text, and bytes hexadecimal.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/typepb"
)

type spec struct {
	Type       string
	Definition string
	Model      string
}

type request struct {
	Id     int
	Do     string
	Url    string
	Topic  string
	Schema spec
	Values []json.RawMessage
	Count  int
}

type answer struct {
	Id     int    `json:"id"`
	Values []any  `json:"values"`
	Error  string `json:"error,omitempty"`
	Text   string `json:"text"`
}

// Inner is a record within a record.
type Inner struct {
	Name  *string `avro:"name" json:"name"`
	Count int32   `avro:"count" json:"count"`
}

// Record has the fields of each record that the tests have; a definition names those of one of them.
type Record struct {
	Flag    bool              `avro:"flag" json:"flag"`
	Small   int32             `avro:"small" json:"small"`
	Large   int64             `avro:"large" json:"large"`
	Single  float32           `avro:"single" json:"single"`
	Wide    float64           `avro:"wide" json:"wide"`
	Text    *string           `avro:"text" json:"text"`
	Raw     []byte            `avro:"raw" json:"raw"`
	Color   *string           `avro:"color" json:"color"`
	Inner   *Inner            `avro:"inner" json:"inner"`
	Inners  []Inner           `avro:"inners" json:"inners"`
	Counts  *map[string]int64 `avro:"counts" json:"counts"`
	Instant *time.Time        `avro:"instant" json:"instant"`
}

func main() {
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var given request
		if err := json.Unmarshal(line, &given); err != nil {
			panic(err)
		}
		said := answer{Id: given.Id}
		if said.Values, err = serve(given); err != nil {
			said.Error, said.Text = fmt.Sprintf("%T", err), err.Error()
		}
		text, err := json.Marshal(said)
		if err != nil {
			panic(err)
		}
		fmt.Printf("answer\t%s\n", text)
	}
}

func serve(given request) ([]any, error) {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:               given.Url,
		OperationTimeout:  time.Minute,
		Logger:            log.NewLoggerWithLogrus(silent),
		MetricsRegisterer: prometheus.NewRegistry(),
	})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	schema, err := schema(given.Schema)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if given.Do == "send" {
		return nil, send(limited, client, schema, given)
	}
	return receive(limited, client, schema, given)
}

func send(limited context.Context, client pulsar.Client, schema pulsar.Schema, given request) error {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: given.Topic, Schema: schema})
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, each := range given.Values {
		value, err := value(given.Schema, each)
		if err != nil {
			return err
		}
		if _, err := producer.Send(limited, &pulsar.ProducerMessage{Value: value}); err != nil {
			return err
		}
	}
	return nil
}

func receive(limited context.Context, client pulsar.Client, schema pulsar.Schema, given request) ([]any, error) {
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic: given.Topic, StartMessageID: pulsar.EarliestMessageID(), Schema: schema,
	})
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	values := []any{}
	for len(values) < given.Count {
		message, err := reader.Next(limited)
		if err != nil {
			return nil, err
		}
		value, err := shown(given.Schema, message)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func schema(given spec) (pulsar.Schema, error) {
	switch given.Type {
	case "NONE":
		return pulsar.NewBytesSchema(nil), nil
	case "STRING":
		return pulsar.NewStringSchema(nil), nil
	case "INT8":
		return pulsar.NewInt8Schema(nil), nil
	case "INT16":
		return pulsar.NewInt16Schema(nil), nil
	case "INT32":
		return pulsar.NewInt32Schema(nil), nil
	case "INT64":
		return pulsar.NewInt64Schema(nil), nil
	case "FLOAT":
		return pulsar.NewFloatSchema(nil), nil
	case "DOUBLE":
		return pulsar.NewDoubleSchema(nil), nil
	case "AVRO":
		return pulsar.NewAvroSchemaWithValidation(given.Definition, nil)
	case "JSON":
		return pulsar.NewJSONSchemaWithValidation(given.Definition, nil)
	case "PROTOBUF":
		return pulsar.NewProtoSchemaWithValidation(given.Definition, nil)
	case "PROTOBUF_NATIVE":
		return pulsar.NewProtoNativeSchemaWithMessage(model(given), nil), nil
	}
	return nil, fmt.Errorf("no schema %s", given.Type)
}

func model(given spec) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(given.Model))
	if err != nil {
		panic(err)
	}
	return kind.New().Interface()
}

func value(given spec, data json.RawMessage) (any, error) {
	if given.Type == "AVRO" || given.Type == "JSON" {
		record := &Record{}
		return record, json.Unmarshal(data, record)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return nil, err
	}
	switch given.Type {
	case "NONE":
		return hex.DecodeString(text)
	case "INT8":
		number, err := strconv.ParseInt(text, 10, 8)
		return int8(number), err
	case "INT16":
		number, err := strconv.ParseInt(text, 10, 16)
		return int16(number), err
	case "INT32":
		number, err := strconv.ParseInt(text, 10, 32)
		return int32(number), err
	case "INT64":
		return strconv.ParseInt(text, 10, 64)
	case "FLOAT":
		number, err := strconv.ParseFloat(text, 32)
		return float32(number), err
	case "DOUBLE":
		return strconv.ParseFloat(text, 64)
	case "PROTOBUF", "PROTOBUF_NATIVE":
		message := model(given)
		return message, prototext.Unmarshal([]byte(text), message)
	}
	return text, nil
}

func shown(given spec, message pulsar.Message) (any, error) {
	switch given.Type {
	case "NONE":
		var data []byte
		err := message.GetSchemaValue(&data)
		return hex.EncodeToString(data), err
	case "STRING":
		var text *string
		err := message.GetSchemaValue(&text)
		return text, err
	case "INT8":
		return number[int8](message)
	case "INT16":
		return number[int16](message)
	case "INT32":
		return number[int32](message)
	case "INT64":
		return number[int64](message)
	case "FLOAT":
		return number[float32](message)
	case "DOUBLE":
		return number[float64](message)
	case "PROTOBUF", "PROTOBUF_NATIVE":
		value := model(given)
		err := message.GetSchemaValue(value)
		return prototext.Format(value), err
	}
	record := Record{}
	return &record, message.GetSchemaValue(&record)
}

func number[T any](message pulsar.Message) (any, error) {
	var value T
	err := message.GetSchemaValue(&value)
	return fmt.Sprint(value), err
}
