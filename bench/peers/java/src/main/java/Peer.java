// SPDX-License-Identifier: MIT
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson's RedLock, and its RLock on one node, as peers: Peer WAY LEASE_MS HOST:PORT... As its
 * documentation shows: a client for each node, all settings as they are.
 */
public final class Peer {
  private final List<RedissonClient> clients = new ArrayList<>();
  private final boolean onOneNode;
  private final long lease;

  private Peer(String[] arguments) {
    onOneNode = arguments[0].equals("rlock");
    lease = Long.parseLong(arguments[1]);
    for (int i = 2; i < (onOneNode ? 3 : arguments.length); ++i) {
      Config config = new Config();
      config.useSingleServer().setAddress("redis://" + arguments[i]);
      clients.add(Redisson.create(config));
    }
  }

  private RLock lock(String name) {
    if (onOneNode) return clients.get(0).getLock(name);
    return new RedissonRedLock(
        clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new));
  }

  /** One caller's calls. */
  private static final class Calls {
    final List<Long> acquired = new ArrayList<>();
    final List<Long> released = new ArrayList<>();
    long inTime;
    long failed;
    long overlaps;
    String error = "";

    void note(Exception exception) {
      failed += 1;
      if (error.isEmpty()) error = exception.toString();
    }
  }

  /** Whether nobody else is where only one may be. */
  private static boolean enter(String guard) {
    try {
      Files.createFile(Path.of(guard));
      return true;
    } catch (IOException exception) {
      return false;
    }
  }

  /** Until the end. Two that hold one lock meet at the guard's file. */
  private void call(Calls calls, long end, long section, String name, String guard) {
    long start = System.nanoTime();
    while (System.nanoTime() < end) {
      RLock lock = lock(name);
      try {
        lock.lock(lease, TimeUnit.MILLISECONDS);
      } catch (Exception exception) {
        calls.note(exception);
        continue;
      }
      calls.acquired.add((System.nanoTime() - start) / 1000);
      if (System.nanoTime() < end) calls.inTime += 1;
      boolean alone = guard.equals("-") || enter(guard);
      if (!alone) calls.overlaps += 1;
      try {
        if (section > 0) Thread.sleep(section);
        if (!guard.equals("-") && alone) Files.delete(Path.of(guard));
        start = System.nanoTime();
        lock.unlock();
        calls.released.add((System.nanoTime() - start) / 1000);
      } catch (Exception exception) {
        calls.note(exception);
      }
      start = System.nanoTime();
    }
  }

  /** run MS CALLERS SECTION_MS NAME GUARD */
  private String run(String[] words) throws InterruptedException {
    long end = System.nanoTime() + Long.parseLong(words[1]) * 1_000_000;
    List<Calls> all = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(words[2]); ++i) {
      Calls calls = new Calls();
      all.add(calls);
      String name = words[4].endsWith("-") ? words[4] + i : words[4];
      long section = Long.parseLong(words[3]);
      threads.add(new Thread(() -> call(calls, end, section, name, words[5])));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    List<String> errors = all.stream().map(one -> one.error).filter(e -> !e.isEmpty()).toList();
    return String.format(
        "{\"acquire_us\":%s,\"release_us\":%s,\"grants\":%s,\"failed\":%d,\"overlaps\":%d,"
            + "\"error\":%s}",
        all.stream().flatMap(one -> one.acquired.stream()).toList(),
        all.stream().flatMap(one -> one.released.stream()).toList(),
        all.stream().map(one -> one.inTime).toList(),
        all.stream().mapToLong(one -> one.failed).sum(),
        all.stream().mapToLong(one -> one.overlaps).sum(),
        quoted(errors.isEmpty() ? "" : errors.get(0)));
  }

  private static String quoted(String text) {
    String plain = text.replaceAll("[\\x00-\\x1f]", " ");
    return '"' + plain.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }

  private static String outcome(String word, Runnable work) {
    long start = System.nanoTime();
    String error = "";
    try {
      work.run();
    } catch (Exception exception) {
      error = exception.toString();
    }
    return String.format(
        "{\"%s\":%b,\"us\":%d,\"error\":%s}",
        word, error.isEmpty(), (System.nanoTime() - start) / 1000, quoted(error));
  }

  public static void main(String[] arguments) throws Exception {
    Peer peer = new Peer(arguments);
    System.out.printf(
        "{\"version\":\"redisson %s, Java %s\"}%n",
        Redisson.class.getPackage().getImplementationVersion(),
        System.getProperty("java.version"));
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    RLock held = null;
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] words = line.split(" ");
      if (words[0].equals("run")) System.out.println(peer.run(words));
      if (words[0].equals("hold")) {
        RLock lock = peer.lock(words[1]);
        held = lock;
        System.out.println(
            outcome("held", () -> lock.lock(peer.lease, TimeUnit.MILLISECONDS)));
      }
      if (words[0].equals("release")) System.out.println(outcome("released", held::unlock));
    }
    System.exit(0);
  }
}
