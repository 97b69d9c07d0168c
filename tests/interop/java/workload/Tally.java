import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;

/** Numbers of series, as consumers receive them: which came, how often, and whether they first came in order. */
class Tally {
    private final int series;
    private final int each;
    private final boolean ordered;
    private final Map<String, Set<Integer>> seen = new HashMap<>();
    private final List<String> disorder = new ArrayList<>();
    private int distinct;
    private int repeats;

    /** Each of {@code series} series has the numbers from 0 to {@code each} - 1. */
    Tally(int series, int each, boolean ordered) {
        this.series = series;
        this.each = each;
        this.ordered = ordered;
    }

    /** Notes a number; answers whether it came for the first time. */
    synchronized boolean add(String name, int number) {
        Set<Integer> numbers = seen.computeIfAbsent(name, unused -> new TreeSet<>());
        if (!numbers.add(number)) {
            repeats++;
            return false;
        }
        if (ordered && number != numbers.size() - 1) {
            disorder.add(name + ":" + number + " as " + (numbers.size() - 1));
        }
        distinct++;
        notifyAll();
        return true;
    }

    synchronized boolean complete() {
        return distinct >= series * each;
    }

    synchronized int distinct() {
        return distinct;
    }

    /** Waits until every number came. */
    synchronized void await() throws InterruptedException {
        long end = System.nanoTime() + Setting.PATIENCE * 1_000_000_000L;
        while (!complete() && System.nanoTime() < end) {
            wait(100);
        }
        check();
    }

    synchronized void check() {
        if (!disorder.isEmpty()) {
            throw new IllegalStateException("out of order: " + disorder.subList(0, Math.min(5, disorder.size())));
        }
        if (!complete() || seen.size() != series) {
            throw new IllegalStateException(distinct + " of " + series * each + " came, without " + missing());
        }
        if (distinct > series * each) {
            throw new IllegalStateException(distinct + " came, more than were sent");
        }
    }

    private List<String> missing() {
        List<String> found = new ArrayList<>();
        seen.forEach((name, numbers) -> {
            for (int number = 0; number < each && found.size() < 8; number++) {
                if (!numbers.contains(number)) {
                    found.add(name + ":" + number);
                }
            }
        });
        return found;
    }

    synchronized String figures() {
        return distinct + " messages, " + repeats + " repeats";
    }

    /** Runs steps in threads, and throws what one of them threw. */
    static class Threads {
        private final List<Thread> threads = new ArrayList<>();
        private Throwable failure;

        void start(Callable<?> steps) {
            Thread thread = new Thread(() -> {
                try {
                    steps.call();
                } catch (Throwable error) {
                    synchronized (this) {
                        failure = failure == null ? error : failure;
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }

        void join() throws Exception {
            for (Thread thread : threads) {
                thread.join();
            }
            if (failure != null) {
                throw new Exception(failure);
            }
        }
    }
}
