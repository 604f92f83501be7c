internal import Model

/// `[destination.syslog]`: how events become syslog messages (RFC 5424).
extension SyslogSettings: SettingsSection {
    static let entries: [Entry<SyslogSettings>] = [
        .setting("facility", \.facility, .choice, "The facility of all messages."),
        .pair(
            "message", .init("form", \.message, .choice), .init("max_size", \.maxMessage, maxMessageType),
            "event: the message is the event as JSON; text: it is the event's own message, and of the other"
                + " members only those in structured_data are sent. max_size is the longest message that the"
                + " receiver reads (rsyslog: maxMessageSize; syslog-ng: log-msg-size). Events with longer"
                + " ones become dead letters: a receiver cuts or splits them silently."),
        .setting("max_message", \.maxMessage, maxMessageType, "Now message.max_size.")
            .renamed(to: "message.max_size"),
        .pair(
            "structured_data",
            .init("members", \.structuredData, .list(of: .text(), count: 0...64, unique: true)),
            .init("id", \.structuredDataID, structuredDataIDType),
            "Members (names, or paths with dots) that are also sent as structured data, as [\"trace_id\","
                + " \"http.status\"], and the name of their element. 32473 is the number for examples: use"
                + " your organisation's enterprise number, if there is one."),
        .setting(
            "structured_data_id", \.structuredDataID, structuredDataIDType, "Now structured_data.id."
        ).renamed(to: "structured_data.id"),
    ]

    /// A receiver may refuse or cut messages beyond 480 bytes (RFC 5424, section 6.1), so no limit can be
    /// below.
    private static let maxMessageType = ValueType<Int>.size(480...(1 << 20))

    private static let structuredDataIDType = ValueType<String>.checked(
        "SD-ID", mustBe: "NAME@NUMBER of at most 32 letters, digits, -, _ and dots"
    ) {
        $0.isStructuredDataID
    }
}

extension DestinationSettings {
    /// What contradicts in a destination of type `syslog`: the setting, and what is wrong with it.
    var syslogMistakes: [(setting: String, what: String, severity: Problem.Severity)] {
        guard case .syslog(let syslog) = reach, let url else { return [] }
        var mistakes: [(setting: String, what: String, severity: Problem.Severity)] = []
        // On this machine's loopback interface only root can read it.
        if url.scheme == "tcp", !url.isLoopback, !allowPlainHTTP {
            let what =
                "is tcp:// to another machine, which is plain text; use tls://, or set"
                + " allow_plain_http = true if you mean it"
            mistakes.append(("url", what, .error))
        }
        if url.scheme == "tcp", tls != TLSOptions() {
            mistakes.append(("tls", "has no effect: the url is tcp://", .warning))
        }
        // RFC 5424 has no place for other members than the message and structured data.
        if syslog.message == .text, syslog.structuredData.isEmpty {
            let what = "is \"text\" and there is no structured_data: no other member is sent"
            mistakes.append(("syslog.message", what, .warning))
        }
        return mistakes
    }
}

extension String {
    /// Whether a text is an SD-ID with an enterprise number, which all but the registered ids must have (RFC
    /// 5424, section 6.3.2).
    fileprivate var isStructuredDataID: Bool {
        let parts = split(separator: "@", omittingEmptySubsequences: false)
        guard utf8.count <= 32, parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return false }
        return String(parts[0]).hasOnlyLettersDigits(and: "-_.")
            && parts[1].allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") }
    }
}
