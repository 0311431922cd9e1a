import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.util.concurrent.Executors;

// A counter with a TTL in one script, on plain connections: java App.java
// GET /?key=K answers 200 or 429. LIMIT requests pass per WINDOW seconds, on the Redis of REDIS_URL.
public class App {
    static final String SCRIPT = "local n = redis.call('INCR', KEYS[1]) "
        + "if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n";

    public static void main(String[] args) throws Exception {
        int limit = Integer.parseInt(System.getenv().getOrDefault("LIMIT", "1"));
        String window = System.getenv().getOrDefault("WINDOW", "60");
        URI url = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            String key = "count:" + exchange.getRequestURI().getQuery();
            long count = Long.parseLong(ask(url, "EVAL", SCRIPT, "1", key, window).substring(1));
            exchange.sendResponseHeaders(count <= limit ? 200 : 429, -1);
            exchange.close();
        });
        server.start();
    }

    // ask sends a command on a connection of its own, so that a lost one does no harm to the next request.
    static String ask(URI url, String... parts) throws IOException {
        try (Socket redis = new Socket(url.getHost(), url.getPort())) {
            BufferedReader replies = new BufferedReader(new InputStreamReader(redis.getInputStream()));
            String user = url.getUserInfo(); // ":PASSWORD", if the Redis has one
            if (user != null) {
                redis.getOutputStream().write(command("AUTH", user.substring(user.indexOf(':') + 1)));
                replies.readLine();
            }
            redis.getOutputStream().write(command(parts));
            return replies.readLine();
        }
    }

    // command writes an array of bulk strings, as Redis' protocol has them.
    static byte[] command(String... parts) {
        StringBuilder out = new StringBuilder("*" + parts.length + "\r\n");
        for (String part : parts) {
            out.append("$" + part.getBytes().length + "\r\n" + part + "\r\n");
        }
        return out.toString().getBytes();
    }
}
