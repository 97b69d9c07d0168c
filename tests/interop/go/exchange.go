// Exchanges messages with a broker, with one client for each line of standard input.
//
// A line has the options of a client as name=value, separated by tabs. The answer has the name of the line, "ok"
// or "refused", and the reason, separated by tabs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

func main() {
	var running sync.WaitGroup
	var output sync.Mutex
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		options := map[string]string{}
		for _, option := range strings.Split(input.Text(), "\t") {
			name, value, _ := strings.Cut(option, "=")
			options[name] = value
		}
		running.Add(1)
		go func() {
			defer running.Done()
			outcome := "ok\t"
			if err := exchange(options); err != nil {
				outcome = "refused\t" + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			output.Lock()
			defer output.Unlock()
			fmt.Printf("%s\t%s\n", options["name"], outcome)
		}()
	}
	running.Wait()
}

func exchange(options map[string]string) error {
	count, pause, timeout := number(options["messages"]), number(options["pause"]), number(options["timeout"])
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	settings := pulsar.ClientOptions{
		URL:                        options["url"],
		OperationTimeout:           time.Duration(timeout) * time.Second,
		TLSTrustCertsFilePath:      options["trust"],
		TLSValidateHostname:        options["verify"] == "all",
		TLSAllowInsecureConnection: options["verify"] == "nothing",
		Logger:                     log.NewLoggerWithLogrus(silent),
		MetricsRegisterer:          prometheus.NewRegistry(),
	}
	// For HTTPS the client shows these files alone, not those of its authentication.
	settings.TLSCertificateFile, settings.TLSKeyFilePath = options["certificate"], options["key"]
	var err error
	switch options["method"] {
	case "token":
		settings.Authentication = pulsar.NewAuthenticationTokenFromFile(options["token"])
	case "basic":
		settings.Authentication, err = pulsar.NewAuthenticationBasic(options["user"], options["password"])
	case "tls":
		settings.Authentication = pulsar.NewAuthenticationTLS(options["certificate"], options["key"])
	case "oauth2":
		settings.Authentication = pulsar.NewAuthenticationOAuth2(map[string]string{
			"type": "client_credentials", "issuerUrl": options["issuer"], "privateKey": options["credentials"],
		})
	}
	if err != nil {
		return err
	}
	client, err := pulsar.NewClient(settings)
	if err != nil {
		return err
	}
	defer client.Close()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: options["topic"], SubscriptionName: "s"})
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: options["topic"]})
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := 0; number < count; number++ {
		if err := exchangeOne(producer, consumer, strconv.Itoa(number)); err != nil {
			return err
		}
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	return nil
}

func exchangeOne(producer pulsar.Producer, consumer pulsar.Consumer, value string) error {
	limited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := producer.Send(limited, &pulsar.ProducerMessage{Payload: []byte(value)}); err != nil {
		return err
	}
	message, err := consumer.Receive(limited)
	if err != nil {
		return err
	}
	if string(message.Payload()) != value {
		return fmt.Errorf("message %s is %s", value, message.Payload())
	}
	return consumer.Ack(message)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}
