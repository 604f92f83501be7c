import Glibc
import TestKit
import Testing

/// nginx with a configuration of its own: answers each request with its id, and logs it as JSON.
final class LoggingNginx {
    let port: Int
    private let log: String
    private let program: RunningProgram

    init(in path: String, log: String) throws {
        port = try freePort()
        self.log = log
        let home = "\(path)/nginx"
        try #require(mkdir(home, 0o755) == 0)
        let configuration = """
            daemon off; worker_processes 1; pid \(home)/pid; error_log \(home)/error.log;
            \(getuid() == 0 ? "user root;" : "")
            events { worker_connections 64; }
            http {
                client_body_temp_path \(home)/body; proxy_temp_path \(home)/proxy; fastcgi_temp_path \(home)/f;
                uwsgi_temp_path \(home)/u; scgi_temp_path \(home)/s; keepalive_requests 1000000;
                log_format events escape=json '{"name":"request","request_id":"$request_id","timestamp":"$time_iso8601",'
                    '"properties":{"uri":"$request_uri","status":$status,"seconds":$request_time,'
                    '"agent":"$http_user_agent"}}';
                access_log \(log) events;
                server {
                    listen 127.0.0.1:\(port);
                    location = /health { access_log off; return 204; }
                    location / { return 200 "$request_id\\n"; }
                }
            }
            """
        try write(configuration, to: "\(home)/nginx.conf")
        program = try RunningProgram(
            "/usr/sbin/nginx", ["-p", home, "-c", "\(home)/nginx.conf", "-e", "\(home)/error.log"],
            output: "\(home)/output")
        let address = "http://127.0.0.1:\(port)/health"
        try wait(.seconds(20), "nginx: \(program.printed)") { try fetch(address).status == 204 }
    }

    /// Rotates the log as logrotate does: renames it and has nginx open a new one.
    func rotate(to name: String) throws {
        try #require(rename(log, name) == 0)
        program.send(SIGUSR1)
        try wait(.seconds(20), "nginx to open its log again") { access(log, F_OK) == 0 }
    }

    /// Lets it end what it has begun.
    func stop() {
        program.send(SIGQUIT)
        _ = try? program.exit()
    }
}
