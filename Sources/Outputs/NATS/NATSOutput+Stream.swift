internal import Model

extension Template {
    /// The subject with `*` for each word that contains a placeholder.
    fileprivate var pattern: String {
        filled { _ in "*" }.split(separator: ".").map { $0.contains("*") ? "*" : $0 }.joined(separator: ".")
    }
}

extension NATSOutput {
    /// Asks JetStream which stream takes the subject and how it is configured, for `check`; stores nothing.
    /// Ends within `requestTimeout` for each of two questions.
    ///
    /// - Returns: what a person should know, and whether messages would not be acknowledged; nil if all is
    ///   well.
    package func streamComplaint() async -> (message: String, isRefused: Bool)? {
        let subject = options.nats.subject.pattern
        let question = JSONValue.object([.init("subject", .string(subject))]).description
        guard let answer = await ask("STREAM.NAMES", question) else {
            return (
                "its stream cannot be checked: JetStream does not answer, or these credentials may not query it",
                false
            )
        }
        let streams = answer["streams"]?.elements?.compactMap(\.string) ?? []
        guard let stream = streams.first else {
            return ("no stream takes \(subject): create one; until then nothing is acknowledged", true)
        }
        if let wanted = options.nats.stream, wanted != stream {
            return ("the stream \(stream) takes \(subject), but nats.stream.name is \(wanted)", true)
        }
        guard let config = await ask("STREAM.INFO.\(stream)", "")?["config"] else {
            return ("its stream \(stream) cannot be checked: these credentials may not query it", false)
        }
        let taken = config["subjects"]?.elements?.compactMap(\.string) ?? []
        guard taken.contains(where: { NATSOutput.subjects($0, include: subject) }) else {
            return ("the stream \(stream) takes only some of \(subject), which events fill in", false)
        }
        if config["no_ack"]?.boolean == true {
            return ("the stream \(stream) acknowledges nothing (no_ack)", true)
        }
        if config["sealed"]?.boolean == true { return ("the stream \(stream) is sealed", true) }
        let window = Duration.nanoseconds(config["duplicate_window"]?.integer ?? 0)
        guard window < options.nats.duplicateWindow else { return nil }
        return (
            "the stream \(stream) recognises repeats for \(window.components.seconds) s only, but nats.stream.duplicate_window says "
                + "\(options.nats.duplicateWindow.components.seconds) s", false
        )
    }

    /// Whether every subject of the pattern `other` also matches `pattern`. Source: NATS documentation,
    /// "Subject-Based Messaging".
    static func subjects(_ pattern: String, include other: String) -> Bool {
        let words = pattern.split(separator: ".")
        let others = other.split(separator: ".")
        for (place, word) in words.enumerated() {
            if word == ">" { return others.count > place }
            guard place < others.count, word == "*" || word == others[place] else { return false }
        }
        return words.count == others.count
    }

    /// JetStream's answer to a request of its API; nil without one.
    private func ask(_ question: String, _ content: String) async -> JSONSlice? {
        let message = NATSMessage(
            subject: "$JS.API.\(question)", isQuestion: true, headers: Array("NATS/1.0\r\n\r\n".utf8),
            payload: Array(content.utf8))
        return await client.publish([message]).answer.flatMap { JSONSlice($0[...]) }
    }
}
