import Glibc
import TestKit
import Testing

/// nginx that serves a directory over TLS with the receiver's development certificate: where containers are published.
final class ContainerNginx {
    let port: Int
    let files: String
    private let home: String
    private var program: RunningProgram?
    private var publications = 0

    init(_ bench: Workbench) throws {
        port = try freePort()
        home = "\(bench.path)/containers"
        files = "\(home)/www"
        for directory in [home, files] { try #require(mkdir(directory, 0o755) == 0) }
        let certificates = "\(bench.path)/receiver"
        let configuration = """
            daemon off; master_process off; pid \(home)/pid; error_log \(home)/error.log;
            \(getuid() == 0 ? "user root;" : "")
            events { worker_connections 64; }
            http {
                access_log \(home)/access.log; client_body_temp_path \(home)/body; proxy_temp_path \(home)/proxy;
                fastcgi_temp_path \(home)/f; uwsgi_temp_path \(home)/u; scgi_temp_path \(home)/s;
                server {
                    listen 127.0.0.1:\(port) ssl;
                    ssl_certificate \(certificates)/server.pem; ssl_certificate_key \(certificates)/server.key;
                    root \(files);
                }
            }
            """
        try write(configuration, to: "\(home)/nginx.conf")
    }

    var url: String { "https://127.0.0.1:\(port)/GTM-1234" }
    var accessLog: String { (try? contents(of: "\(home)/access.log")) ?? "" }

    func start(_ bench: Workbench) throws {
        let program = try RunningProgram(
            "/usr/sbin/nginx", ["-p", home, "-c", "\(home)/nginx.conf", "-e", "\(home)/error.log"],
            output: "\(home)/output")
        self.program = program
        let address = "https://127.0.0.1:\(port)/"
        try wait(.seconds(30), "nginx: \(program.printed)") {
            try fetch(address, authority: bench.caFile).status > 0
        }
    }

    /// It holds its connections and says nothing more.
    func freeze() { program?.send(SIGSTOP) }
    func thaw() { program?.send(SIGCONT) }

    func stop() {
        program?.kill9()
        program = nil
    }

    /// Puts a file in place as a whole.
    func publish(_ bytes: [UInt8], as name: String = "GTM-1234") throws {
        try write(bytes, to: "\(files)/.new")
        // nginx makes tags of size and second: files of one second must not look the same.
        publications += 1
        var times = [timespec(), timespec()]
        for place in times.indices { times[place].tv_sec = 1_700_000_000 + publications }
        try #require(utimensat(AT_FDCWD, "\(files)/.new", times, 0) == 0)
        try #require(rename("\(files)/.new", "\(files)/\(name)") == 0)
    }
}
