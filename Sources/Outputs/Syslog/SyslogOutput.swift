package import EventLoops
package import Logs
package import Model

/// Sends events to a syslog server over TLS or TCP, one message for each event, in order.
///
/// Syslog has no acknowledgement. A batch counts as sent once the server's machine has acknowledged all its
/// bytes ([why](../DESIGN.md#syslog-counts-a-batch-as-sent-when-tcp-has-acknowledged-it)); bytes that the
/// server's program has not read when it ends are lost. If the connection breaks earlier, the whole batch
/// is sent again, and some of its events may be stored twice under the same `event_id`. Runs on the loop
/// passed to `init`.
package actor SyslogOutput: MeasuredOutput {
    package var measures = OutputMeasures()
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool
    /// True: the head of each message names the event's app.
    package nonisolated var asksWhose: Bool { true }

    package nonisolated let loop: EventLoop
    private let encoder: SyslogEncoder
    private let time: any TimeSource
    /// Unpacks the batch's lines; they are encoded by `encoder`.
    private let builder: BodyBuilder
    private let client: SyslogClient
    /// Certificates, read again when their files change. Syslog has no secret.
    private var files: FollowedFiles

    /// Sets up a destination, and reads its certificates for the first time. Connects to nothing.
    ///
    /// - Parameters:
    ///   - hostName: this machine's name, for events that name none.
    ///   - messages: where events have their message, besides the usual members.
    /// - Throws: `OutputError` if a setting has no meaning or a file cannot be read.
    package init(
        _ name: DestinationName, _ settings: DestinationSettings, _ syslog: SyslogSettings,
        hostName: String?, messages: MessagePaths = MessagePaths(), on loop: EventLoop, log: Log,
        time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        self.loop = loop
        self.time = time
        encoder = SyslogEncoder(syslog, host: hostName, messages: messages)
        builder = try BodyBuilder(NDJSONEncoder(), .none)
        let address = try settings.syslogServer()
        let files = try FollowedFiles(name, settings.tls, secret: nil, log: log, at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        followsFiles = files.areAny
        client = try SyslogClient(settings, address, tls: files.tls, on: loop, time: time)
    }

    /// Sends a batch. Events that are too long are rejected after the others were acknowledged.
    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        let messages: SyslogEncoder.Messages
        do throws(OutputError) {
            messages = encoder.messages(try EventView.all(try builder.lines(of: batch)), of: batch.header)
        } catch {
            return error.failure.outcome
        }
        if !messages.bytes.isEmpty {
            measures.sentBytes += messages.bytes.count
            let outcome = await client.send(messages.bytes)
            if let expiry = await client.serverExpiry {
                measures.certificates.serverExpiry = expiry
            }
            guard outcome == .acknowledged else { return outcome }
        }
        return messages.tooLong.isEmpty ? .acknowledged : .partial(rejected: messages.tooLong, retry: [])
    }

    /// Checks that the server accepts a connection, and TLS if it is set. Ends within `requestTimeout`.
    package func probe() async -> Failure? {
        let outcome = await client.send([])
        guard outcome != .acknowledged else { return nil }
        return outcome.failure ?? Failure(kind: .connect, message: "there is no route to the server")
    }

    var isConnected: Bool { get async { await client.isConnected } }
    var isConnecting: Bool { get async { await client.isConnecting } }

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates)
        if changes.areAny {
            await client.use(files.tls)
        }
        return changes.areAny
    }
}

extension DestinationSettings {
    /// The server of `tls://host:port` or `tcp://host:port`. Without a port, 6514 for TLS (RFC 5425,
    /// section 4.1) and 601 for TCP (registered for syslog over TCP, RFC 3195).
    ///
    /// - Throws: `OutputError` with code `invalidSetting`, also for plain TCP to another machine unless
    ///   that is allowed.
    fileprivate func syslogServer() throws(OutputError) -> NATSAddress {
        let text = url?.text ?? ""
        let scheme = url?.scheme ?? ""
        let hasPath = !["", "/"].contains(url?.path ?? "")
        guard kind.schemes.contains(scheme), url?.hasCredentials == false, !hasPath,
            var address = NATSAddress(
                authority: String(text.dropFirst("\(scheme)://".count).prefix { $0 != "/" }),
                usualPort: scheme == "tls" ? 6514 : 601)
        else {
            throw OutputError(.invalidSetting, "the url must have the form tls://host:6514 or tcp://host:601")
        }
        address.isTLS = scheme == "tls"
        try require(
            address.isTLS || address.isLoopback || allowPlainHTTP,
            "plain TCP to \(address.host) shows every event on the network; use tls://, or allow it")
        return address
    }
}
