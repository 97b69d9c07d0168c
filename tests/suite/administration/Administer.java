import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.admin.Transactions;
import org.apache.pulsar.client.api.*;
import org.apache.pulsar.client.api.transaction.*;
import org.apache.pulsar.common.policies.data.*;

/** The official Java administration client, call after call; one line for each: what came of it. */
public class Administer {
    /** A real broker applies policies of topics a little later. */
    static Object soon(Step s, Object wanted) throws Exception {
        Object found = null;
        for (int i = 0; i < 200 && !Objects.equals(found = s.run(), wanted); i++) Thread.sleep(50);
        return found;
    }
    interface Step { Object run() throws Exception; }
    static void step(String name, Step s) {
        try { System.out.println(name + " = " + s.run()); }
        catch (PulsarAdminException e) { System.out.println(name + " ! " + e.getClass().getSimpleName() + " " + e.getStatusCode() + " " + e.getHttpError()); }
        catch (Exception e) { System.out.println(name + " !! " + e); }
    }
    static List<String> sorted(List<String> names) { names = new ArrayList<>(names); Collections.sort(names); return names; }
    /** The topic has no messages yet; one of an open transaction, which the administrator aborts, and one behind it. */
    static void transactions(PulsarAdmin admin, String url, String t) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(url).enableTransaction(true).build();
                Producer<String> producer = client.newProducer(Schema.STRING).topic(t).sendTimeout(0, TimeUnit.SECONDS).create()) {
            admin.topics().createSubscription(t, "x", MessageId.earliest);
            TxnID id = client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build().get().getTxnID();
            Transaction open = client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build().get();
            producer.newMessage(open).value("inside").send();
            MessageIdAdv last = (MessageIdAdv) producer.newMessage().value("behind").send();
            Transactions transactions = admin.transactions();
            step("coordinators", () -> transactions.listTransactionCoordinators().size());
            step("coordinator", () -> transactions.getCoordinatorStats().get(0).state + " " + (transactions.getCoordinatorStatsById(0).getLeastSigBits() == open.getTxnID().getLeastSigBits()));
            step("transaction", () -> { TransactionMetadata m = transactions.getTransactionMetadata(open.getTxnID()); return m.status + " " + m.timeoutAt + " " + m.producedPartitions.keySet() + " " + m.ackedPartitions; });
            step("slow", () -> transactions.getSlowTransactions(59, TimeUnit.SECONDS).containsKey(open.getTxnID().toString()) + " " + transactions.getSlowTransactions(60, TimeUnit.SECONDS).containsKey(open.getTxnID().toString()));
            step("buffer", () -> transactions.getTransactionBufferStats(t).state + " " + transactions.getTransactionBufferStats(t, true).ongoingTxnSize);
            step("in buffer", () -> transactions.getTransactionInBufferStats(open.getTxnID(), t).aborted);
            step("pending", () -> transactions.getPendingAckStats(t, "x", true).state);
            step("in pending", () -> transactions.getTransactionInPendingAckStats(open.getTxnID(), t, "x").cumulativeAckPosition);
            step("position", () -> transactions.getPositionStatsInPendingAck(t, "x", last.getLedgerId(), last.getEntryId(), null).state);
            step("scale", () -> { transactions.scaleTransactionCoordinators(1); return 0; });
            step("no coordinator", () -> transactions.getCoordinatorStatsById(7));
            step("peek committed", () -> payloads(admin.topics().peekMessages(t, "x", 4, false, TransactionIsolationLevel.READ_COMMITTED)));
            step("peek uncommitted", () -> payloads(admin.topics().peekMessages(t, "x", 4, false, TransactionIsolationLevel.READ_UNCOMMITTED)));
            step("abort", () -> { transactions.abortTransaction(open.getTxnID()); return transactions.getTransactionInBufferStats(open.getTxnID(), t).aborted; });
            step("peek aborted", () -> payloads(admin.topics().peekMessages(t, "x", 4, false, TransactionIsolationLevel.READ_COMMITTED)));
            step("peek markers", () -> payloads(admin.topics().peekMessages(t, "x", 4, true, TransactionIsolationLevel.READ_UNCOMMITTED)));
            transactions.abortTransaction(id);
            step("no transaction", () -> { try { return transactions.getTransactionMetadata(id); } catch (PulsarAdminException e) { return e.getHttpError().replace(id.toString(), "it").strip(); } });
            admin.topics().deleteSubscription(t, "x");
        }
    }
    static List<String> payloads(List<Message<byte[]>> messages) { return messages.stream().map(m -> new String(m.getData())).toList(); }
    public static void main(String[] a) throws Exception {
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(a[0]).build()) {
            String tenant = a[1];
            step("clusters", () -> admin.clusters().getClusters());
            step("brokers", () -> admin.brokers().getActiveBrokers("standalone").size());
            step("health", () -> { admin.brokers().healthcheck(); return "ok"; });
            step("tenant", () -> { admin.tenants().createTenant(tenant, TenantInfo.builder().adminRoles(Set.of("a")).allowedClusters(Set.of("standalone")).build()); return admin.tenants().getTenantInfo(tenant); });
            step("tenant again", () -> { admin.tenants().createTenant(tenant, TenantInfo.builder().allowedClusters(Set.of("standalone")).build()); return 0; });
            step("namespace", () -> { admin.namespaces().createNamespace(tenant + "/orders"); return admin.namespaces().getPolicies(tenant + "/orders").deduplicationEnabled; });
            step("namespace2", () -> { admin.namespaces().createNamespace(tenant + "/o2", 4); return sorted(admin.namespaces().getNamespaces(tenant)); });
            step("namespace3", () -> { admin.namespaces().createNamespace(tenant + "/o3", Set.of("standalone")); return sorted(admin.namespaces().getNamespaces(tenant)); });
            step("namespace4", () -> { Policies p = new Policies(); p.deduplicationEnabled = true; p.bundles = BundlesData.builder().numBundles(2).build(); p.replication_clusters = Set.of("standalone"); admin.namespaces().createNamespace(tenant + "/o4", p); return admin.namespaces().getDeduplicationStatus(tenant + "/o4"); });
            step("dedup", () -> { admin.namespaces().setDeduplicationStatus(tenant + "/orders", true); return admin.namespaces().getDeduplicationStatus(tenant + "/orders"); });
            step("retention", () -> { admin.namespaces().setRetention(tenant + "/orders", new RetentionPolicies(10, 5)); return admin.namespaces().getRetention(tenant + "/orders"); });
            step("ttl", () -> { admin.namespaces().setNamespaceMessageTTL(tenant + "/orders", 30); return admin.namespaces().getNamespaceMessageTTL(tenant + "/orders"); });
            step("auto", () -> { admin.namespaces().setAutoTopicCreation(tenant + "/orders", AutoTopicCreationOverride.builder().allowAutoTopicCreation(true).topicType("partitioned").defaultNumPartitions(3).build()); return admin.namespaces().getAutoTopicCreation(tenant + "/orders").getDefaultNumPartitions(); });
            String t = "persistent://" + tenant + "/orders/t", p = "persistent://" + tenant + "/orders/p";
            step("create", () -> { admin.topics().createNonPartitionedTopic(t); return sorted(admin.topics().getList(tenant + "/orders")); });
            step("create properties", () -> { admin.topics().createNonPartitionedTopic(t + "2", Map.of("k", "v")); return admin.topics().getProperties(t + "2"); });
            step("partitioned", () -> { admin.topics().createPartitionedTopic(p, 2); return admin.topics().getPartitionedTopicMetadata(p).partitions; });
            step("partitioned properties", () -> { admin.topics().createPartitionedTopic(p + "2", 2, Map.of("k", "v")); return admin.topics().getPartitionedTopicMetadata(p + "2").properties; });
            step("update", () -> { admin.topics().updatePartitionedTopic(p, 4); return admin.topics().getPartitionedTopicMetadata(p).partitions; });
            step("shrink", () -> { admin.topics().updatePartitionedTopic(p, 1); return 0; });
            step("list partitioned", () -> sorted(admin.topics().getPartitionedTopicList(tenant + "/orders")));
            step("subscription", () -> { admin.topics().createSubscription(t, "s", org.apache.pulsar.client.api.MessageId.earliest); return sorted(admin.topics().getSubscriptions(t)); });
            step("subscription latest", () -> { admin.topics().createSubscription(t, "l", org.apache.pulsar.client.api.MessageId.latest); return sorted(admin.topics().getSubscriptions(t)); });
            step("reset", () -> { admin.topics().resetCursor(t, "s", 0); return "ok"; });
            step("reset id", () -> { admin.topics().resetCursor(t, "s", org.apache.pulsar.client.api.MessageId.latest); return "ok"; });
            step("skip", () -> { admin.topics().skipAllMessages(t, "s"); admin.topics().skipMessages(t, "s", 1); return "ok"; });
            step("stats", () -> admin.topics().getStats(t).getSubscriptions().get("s").getMsgBacklog());
            step("stats full", () -> { TopicStats s = admin.topics().getStats(t, true, true, true); return s.getDeduplicationStatus() + " " + s.getMsgRateIn() + " " + !s.getOwnerBroker().isEmpty(); });
            step("partitioned stats", () -> admin.topics().getPartitionedStats(p, true).getPartitions().size());
            step("internal", () -> admin.topics().getInternalStats(t).cursors.get("s").markDeletePosition.endsWith(":-1"));
            step("partitioned internal", () -> admin.topics().getPartitionedInternalStats(p).partitions.size());
            step("last id", () -> admin.topics().getLastMessageId(t).toString().endsWith(":-1:-1"));
            step("lookup", () -> admin.lookups().lookupTopic(t).startsWith("pulsar://"));
            step("lookup partitioned", () -> admin.lookups().lookupPartitionedTopic(p).size());
            step("bundle", () -> admin.lookups().getBundleRange(t).startsWith("0x"));
            step("topic dedup", () -> { admin.topicPolicies().setDeduplicationStatus(t, false); return soon(() -> admin.topicPolicies().getDeduplicationStatus(t), false); });
            step("topic dedup applied", () -> { admin.topicPolicies().removeDeduplicationStatus(t); return soon(() -> admin.topicPolicies().getDeduplicationStatus(t, true), true); });
            step("topic ttl", () -> { admin.topicPolicies().setMessageTTL(t, 7); return soon(() -> admin.topicPolicies().getMessageTTL(t), 7); });
            step("topic producers", () -> { admin.topicPolicies().setMaxProducers(t, 7); return soon(() -> admin.topicPolicies().getMaxProducers(t), 7); });
            transactions(admin, a[0], t + "2");
            step("unload", () -> { admin.topics().unload(t); admin.topics().unload(p); admin.namespaces().unload(tenant + "/orders"); return "ok"; });
            step("terminate", () -> admin.topics().terminateTopic(t).toString().endsWith(":-1:-1"));
            step("terminate partitioned", () -> admin.topics().terminatePartitionedTopic(p).keySet());
            step("delete subscription", () -> { admin.topics().deleteSubscription(t, "s"); return sorted(admin.topics().getSubscriptions(t)); });
            step("delete none", () -> { admin.topics().delete(t + "none"); return 0; });
            step("delete", () -> { admin.topics().delete(t); admin.topics().delete(t + "2", true); admin.topics().deletePartitionedTopic(p); admin.topics().deletePartitionedTopic(p + "2", true); return sorted(admin.topics().getList(tenant + "/orders")); });
            step("delete namespaces", () -> { for (String n : admin.namespaces().getNamespaces(tenant)) admin.namespaces().deleteNamespace(n); return sorted(admin.namespaces().getNamespaces(tenant)); });
            step("delete tenant", () -> { admin.tenants().deleteTenant(tenant); return admin.tenants().getTenants().contains(tenant); });
        }
    }
}
