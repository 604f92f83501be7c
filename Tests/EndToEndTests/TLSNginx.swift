import Glibc
import TestKit
import Testing

/// nginx before the bench's receiver, with TLS of its own on both sides.
final class TLSNginx {
    let port: Int
    private let home: String
    private let program: RunningProgram

    /// - Parameters:
    ///   - certificate: `FILE` of `FILE.pem` and `FILE.key`.
    ///   - clientAuthority: who certifies clients; nil: no client needs a certificate.
    init(in path: String, certificate: String, before receiver: Int, clientAuthority: String? = nil) throws {
        port = try freePort()
        home = "\(path)/nginx"
        try #require(mkdir(home, 0o755) == 0)
        let clients = clientAuthority.map { "ssl_client_certificate \($0); ssl_verify_client on;" } ?? ""
        let configuration = """
            daemon off; worker_processes 1; pid \(home)/pid; error_log \(home)/error.log;
            \(getuid() == 0 ? "user root;" : "")
            events { worker_connections 64; }
            http {
                client_body_temp_path \(home)/body; proxy_temp_path \(home)/proxy; fastcgi_temp_path \(home)/f;
                uwsgi_temp_path \(home)/u; scgi_temp_path \(home)/s; client_max_body_size 64m;
                log_format clients '$ssl_client_serial $status'; access_log \(home)/access.log clients;
                server {
                    listen 127.0.0.1:\(port) ssl;
                    ssl_certificate \(certificate).pem; ssl_certificate_key \(certificate).key; \(clients)
                    location / { proxy_pass https://127.0.0.1:\(receiver); proxy_ssl_verify off; }
                }
            }
            """
        try write(configuration, to: "\(home)/nginx.conf")
        program = try RunningProgram(
            "/usr/sbin/nginx", ["-p", home, "-c", "\(home)/nginx.conf", "-e", "\(home)/error.log"],
            output: "\(home)/output")
        let begun = "\(home)/pid"
        try wait(.seconds(20), "nginx: \(program.printed)") { access(begun, F_OK) == 0 }
    }

    deinit {
        program.send(SIGTERM)
        _ = try? program.exit()
    }

    /// The serial numbers of the clients' certificates, in order of the requests; `-` for none.
    var clients: [String] {
        ((try? contents(of: "\(home)/access.log")) ?? "").split(separator: "\n").compactMap {
            $0.split(separator: " ").first.map(String.init)
        }
    }

    /// Reads its certificates again, as a renewal has it do; connections that are open end with what they began.
    func reload() { program.send(SIGHUP) }

    /// The serial number of the certificate that a new connection is shown.
    func serial() throws -> String {
        try run(
            "sh",
            [
                "-c",
                "openssl s_client -connect 127.0.0.1:\(port) </dev/null 2>/dev/null | openssl x509 -noout -serial",
            ]
        )
        .text
    }
}
