internal import Model

/// What can only be judged of NATS and Kafka when all files have been read.
extension ReadContext {
    mutating func checkNATS(_ destination: DestinationSettings, path: String) {
        let nats = destination.nats
        let ways = [
            ("token", destination.token), ("user", destination.user == nil ? nil : destination.password),
            ("nats.nkey", nats.nkey), ("nats.credentials", nats.credentials),
        ].filter { $0.1 != nil }.map(\.0)
        // A user with a token is told already.
        if ways.count > 1, ways != ["token", "user"] {
            add(
                .conflict, "\(path) shows who it is by \(ways.joined(separator: " and by ")); keep one",
                at: position(of: path))
        }
        for url in [destination.url].compactMap({ $0 }) + nats.servers
        where url.scheme == "nats" && !url.isLoopback && !destination.allowPlainHTTP && !nats.tlsFirst {
            let key = url == destination.url ? "url" : "nats.servers"
            add(
                .conflict,
                "\(path).\(key) is nats:// to another machine, which may be plain text; use tls://, or set"
                    + " allow_plain_http = true if you mean it", at: position(of: "\(path).\(key)"))
        }
        if nats.message == .event, destination.compression != .none, isSet("\(path).compression") {
            add(
                .conflict, "\(path).compression is for whole batches; with nats.message = \"event\" nothing is packed",
                at: position(of: "\(path).compression"))
        }
    }

    mutating func checkKafka(_ destination: DestinationSettings, path: String) {
        let kafka = destination.kafka
        for address in kafka.addresses where !kafka.tls && !address.isLoopback && !destination.allowPlainHTTP {
            add(
                .conflict,
                "\(path).kafka.tls is false and \(address.host) is another machine: every event would be seen on the way;"
                    + " use TLS, or set allow_plain_http = true if you mean it", at: position(of: "\(path).kafka.tls"))
        }
        if isSet("\(path).kafka.mechanism"), destination.user == nil {
            add(.missing, "\(path) has a kafka.mechanism and no user", at: position(of: "\(path).kafka.mechanism"))
        }
        for key in ["pinned_keys", "minimum_version"] where isSet("\(path).tls.\(key)") {
            add(
                .conflict, "\(path).tls.\(key) is not for type kafka: librdkafka has nothing like it",
                at: position(of: "\(path).tls.\(key)"))
        }
        for key in ["ca_file", "certificate_file"] where isSet("\(path).tls.\(key)") && !kafka.tls {
            add(
                .conflict, "\(path).tls.\(key) has no effect with kafka.tls = false",
                at: position(of: "\(path).tls.\(key)"))
        }
    }
}
