internal import Containers
internal import Control
internal import EventLoops
internal import Model

/// Commands about remotely managed containers. `container test` and `container check`, which explain a
/// document, are in `ContainerTestCommand`.
enum ContainerCommands {
    /// The commands that ask the agent.
    static let containers: [Command] = [
        containerList, containerShow, containerGet, containerRefresh, containerWatch, containerExport,
        containerPreview,
    ]

    /// The commands for authors of containers, which need no agent.
    static let containerTools: [Command] = [containerKeygen, containerSign]

    /// One line for each container, with what an operator looks for first: which version is in force, and
    /// from which source.
    private static let containerList = Command(
        name: "container list", summary: "lists the containers: version, source, age, last problem",
        options: [.json]
    ) { invocation in
        let answer = try invocation.ask("GET", "/v1/containers")
        let lines = (answer["containers"]?.array ?? []).map { line($0, now: SystemTime().wallTime) + "\n" }
        try invocation.show(answer, or: lines.joined())
    }

    /// Prints the agent's answer as it is: a container's values have any form, so there is no text form.
    private static let containerShow = Command(
        name: "container show", summary: "shows one container with its values", arguments: "ID",
        argumentCount: 1...1
    ) { invocation in
        try invocation.console.print(
            try invocation.ask("GET", "/v1/containers/\(invocation.arguments[0])").pretty)
    }

    /// Prints a value as apps get it. The conversion is made by the agent with the same getters as in the
    /// client libraries, so that a script and an app never disagree.
    private static let containerGet = Command(
        name: "container get", summary: "prints a value", arguments: "KEY", argumentCount: 1...1,
        details: """
            A value of another type is converted if that is exact; otherwise it counts as missing, and a \
            missing value gives the type's standard value: "", 0, 0.0 or false. --json says whether it was \
            missing. If several containers have the key, the last one in the configuration counts.
            """,
        options: [
            Command.Option(
                "type TYPE", choices: ["string", "integer", "double", "boolean"],
                "string (default), integer, double or boolean"),
            Command.Option("container ID", "only of this container"), .json,
        ]
    ) { invocation in
        let options = ["type", "container"].compactMap { name in invocation.value(name).map { (name, $0) } }
        let answer = try invocation.ask(
            "GET", "/v1/values", query: [("key", invocation.arguments[0])] + options)
        let value = answer["value"] ?? .null
        try invocation.show(answer, or: "\(value.string ?? value.description)\n")
    }

    /// Fetches containers now instead of at the next interval.
    private static let containerRefresh = Command(
        name: "container refresh", summary: "fetches containers now, and reports the result",
        arguments: "[ID]",
        argumentCount: 0...1,
        details: "Without an id: all that have a url. Exits with 0 if all succeeded, otherwise with 75.",
        options: [.json]
    ) { invocation in
        // Five minutes: each of several downloads has its own timeout.
        let answer = try invocation.ask(
            "POST", "/v1/containers/refresh", body: invocation.bodyOfID, timeout: .seconds(300))
        var code = ExitCode.success
        for refresh in answer["refreshes"]?.array ?? [] {
            let isGood = refresh["result"] == "success"
            if !isGood {
                code = .temporaryFailure
            }
            let version = refresh["version"]?.integer.map { ", version \($0) is in force" } ?? ""
            let message = isGood ? "" : ": \(refresh["message"]?.string ?? "")"
            let id = refresh["id"]?.string ?? "?"
            let result = refresh["result"]?.string ?? "?"
            try invocation.show(refresh, or: "\(id): \(result)\(message)\(version)\n")
        }
        try invocation.end(code)
    }

    /// Follows the events of containers. Lines are printed as they arrive, without parsing: members that a
    /// newer agent adds are kept.
    private static let containerWatch = Command(
        name: "container watch", summary: "prints events of containers as JSON lines, until Ctrl-C",
        details:
            "Begin and end of each refresh, with its type (saved, network) and result; drafts, takeovers, "
            + "expiry.",
        options: [Command.Option("count N", letter: "n", "exit after N")]
    ) { invocation in
        // How many lines are still to be printed; nil for no limit.
        var left = try invocation.number("count")
        try invocation.lines("GET", "/v1/container-events") { line throws(CommandFailure) in
            try invocation.console.write(bytes: line + [UInt8(ascii: "\n")])
            left = left.map { $0 - 1 }
            return left != 0
        }
    }

    /// Writes the document that is in force, so that it can be shipped as a default file.
    private static let containerExport = Command(
        name: "container export",
        summary: "writes the document in force as a default file with the right name",
        arguments: "ID", argumentCount: 1...1,
        details: """
            The file has the container's id as its name, is written to DIRECTORY (default the current one), \
            and can be named in default_file. `-` writes the document to standard output instead. During a \
            preview it is the draft, and the command says so on standard error.
            """,
        options: [Command.Option("directory DIRECTORY", "where to write it; - for standard output")]
    ) { invocation in
        let id = invocation.arguments[0]
        let document = try invocation.answer("GET", "/v1/containers/\(id)/document").body
        let directory = invocation.value("directory") ?? "."
        // Only to say whether the document is a draft: shipped as a default file, a draft would be in force
        // on other machines.
        let state = try invocation.ask("GET", "/v1/containers/\(id)")
        if state["source"] == "preview" {
            invocation.console.printError(
                "\(id): this is the draft that is previewed here, version "
                    + "\(state["version"]?.integer ?? 0), not the published document")
        }
        guard directory != "-" else { return try invocation.console.write(bytes: document) }
        try NamedFile.replace("\(directory)/\(id)", with: document, mode: 0o644)
        try invocation.console.print("\(directory)/\(id)")
    }

    /// Begins and ends previews. A draft is read by this command and sent in the request, because the agent's
    /// user may not be able to read the caller's file.
    private static let containerPreview = Command(
        name: "container preview", summary: "puts a draft of any version in force on this agent temporarily",
        arguments: "FILE | LINK | --end [ID]", argumentCount: 0...1,
        details: """
            The draft in FILE needs no signature, but the right id. LINK (https://…) leads to a draft that \
            the agent fetches; it must be signed with a key of the container, by `container sign \
            --preview`. It is visible in status and metrics, and ends by --end, when its time is up, or at \
            a restart. Exits with 0 if the draft is in force, with 65 if FILE is not a container document, \
            with 1 if it is for another container, with 75 if LINK cannot be fetched.
            """,
        options: [
            Command.Option("end", "end the preview of container ID, or of all"),
            Command.Option("ttl DURATION", "how long it is in force; default 30m, at most 1d"),
            Command.Option("container ID", "the container that it must be for"),
        ]
    ) { invocation in
        if invocation.has("end") {
            let answer = try invocation.ask("POST", "/v1/containers/preview/end", body: invocation.bodyOfID)
            let ended = (answer["ended"]?.array ?? []).compactMap(\.string)
            return try invocation.console.print(
                ended.isEmpty ? "nothing was previewed" : "preview ended: \(ended.joined(separator: ", "))")
        }
        guard let file = invocation.arguments.first else {
            throw CommandFailure(.usage, "name the draft: spoolship container preview FILE; or --end")
        }
        // A link is passed on: the agent fetches the draft itself, with the container's certificates.
        let isLink = file.hasPrefix("https://") || file.hasPrefix("http://")
        let content = isLink ? Array(file.utf8) : try NamedFile.contents(of: file)
        guard let text = String(validating: content, as: UTF8.self) else {
            throw CommandFailure(.badData, "\(file) is not a container document: it is not UTF-8")
        }
        let answer = try invocation.ask(
            "POST", "/v1/containers/preview",
            body: invocation.body(and: [
                isLink ? "url" : "document": .string(text),
                "id": invocation.value("container").map(JSONValue.string),
                "ttl_ms": try invocation.duration("ttl").map { .integer($0.wholeMilliseconds) },
            ]))
        try invocation.console.print(
            "\(answer["id"]?.string ?? "?"): version \(answer["version"]?.integer ?? 0) is in force as a "
                + "draft; `spoolship container preview --end` ends it")
    }

    /// Makes a signing key on this machine. The agent has no part in it: private keys belong where documents
    /// are published, not where they are used.
    private static let containerKeygen = Command(
        name: "container keygen", summary: "makes a key for signing containers, and prints its public key",
        arguments: "FILE", argumentCount: 1...1,
        details: """
            FILE gets the private key (PEM, mode 0600) and must not exist. Put the printed public key into \
            public_key of the agents' configuration. Keep the file off the servers that agents run on.
            """,
        options: [Command.Option("public", "do not make a key: print the public key of FILE")]
    ) { invocation in
        let path = invocation.arguments[0]
        let key: SigningKey
        do throws(SigningError) {
            key = invocation.has("public") ? try SigningKey.load(path) : try SigningKey.generate()
            if !invocation.has("public") {
                try key.save(path)
            }
        } catch {
            // Generating a key uses no file, so an I/O error concerns the new file: exit code 73
            // (`EX_CANTCREAT` of sysexits.h) instead of 74.
            guard error.code != .io || invocation.has("public") else {
                throw CommandFailure(.cannotCreate, error.message)
            }
            throw CommandFailure(error)
        }
        try invocation.console.print(key.publicKey.text)
    }

    /// Signs a document if agents would accept it. Agents make each of these checks too, and keep the old
    /// document if one fails; here the author sees the mistake.
    private static let containerSign = Command(
        name: "container sign", summary: "checks a document and signs it for publication", arguments: "FILE",
        argumentCount: 1...1,
        details: """
            Writes the file to publish to standard output, or to --output: a line with the signatures, then \
            the document byte for byte. Any web server can serve it. If it is signed with the old key and \
            the new one, agents that know either accept it. A document that agents would refuse is not \
            signed: one that has expired, one whose tests fail, or, with --after, one whose version is not \
            higher than the published one in FILE or at URL.

            With --preview it is signed as a draft: only `container preview LINK` accepts it, so nobody can \
            publish it.
            """,
        options: [
            Command.Option("key KEY", letter: "k", repeats: true, "a private key's file; may be given twice"),
            Command.Option("output FILE", letter: "o", "where to write; default standard output"),
            Command.Option("preview", "sign a draft, for previews only"),
            Command.Option("after FILE|URL", "the published document; the version must be higher"),
            Command.Option("ca-file FILE", "certificates to trust for --after URL; default the system's"),
        ]
    ) { invocation in
        let file = invocation.arguments[0]
        /// The failure for a document that agents would refuse.
        func bad(_ what: String) -> CommandFailure { CommandFailure(.badData, "\(file)\(what)") }
        guard !invocation.values("key").isEmpty else {
            throw CommandFailure(.usage, "--key KEY is missing; `spoolship container keygen KEY` makes one")
        }
        let content = try NamedFile.contents(of: file)
        // Otherwise the old signature line would be signed as the beginning of the document, which agents
        // cannot read.
        guard SignedDocument.purpose(of: content) == nil else {
            throw bad(" is signed already; sign the document, which `tail -n +2 \(file)` prints")
        }
        let agent = try TrialAgent(invocation)
        guard !agent.review(content, file, on: invocation.console) else { throw bad(" is not signed") }
        let document = try orFail(.badData, about: file, try ContainerDocument(reading: content))
        // A warning only: a document for a short campaign is meant to expire.
        let now = SystemTime().wallTime
        if let expires = document.expires, expires < now + .seconds(7 * 86_400) {
            invocation.console.printError("\(file): expires in less than a week")
        }
        // The document's own tests: what fails here would fail on each server.
        for test in document.tests {
            let failures = try orFail(
                .badData, about: file,
                try test.failures(in: document, facts: agent.facts, events: agent.events))
            guard failures.isEmpty else {
                throw bad(": tests: \(test.name) fails: \(failures.joined(separator: "; "))")
            }
        }
        if let published = invocation.value("after") {
            let bytes = SignedDocument.document(in: try NamedFile.published(published, invocation))
            let old = try orFail(.badData, about: file, try ContainerDocument(reading: bytes))
            guard old.id == document.id else {
                throw bad(": \(published) is for the container \(old.id), not \(document.id)")
            }
            // Agents refuse a version that is not higher. The same bytes may be signed again, with another
            // key.
            guard document.version > old.version || bytes == content else {
                throw bad(
                    ": version: \(document.version) does not follow the published \(old.version); agents "
                        + "would refuse it"
                )
            }
        }
        let keys = try invocation.values("key").map { path throws(CommandFailure) in
            try relaying(try SigningKey.load(path), CommandFailure.init(_:))
        }
        let purpose: SignedDocument.Purpose = invocation.has("preview") ? .preview : .publication
        let signed = try relaying(
            try SignedDocument(signing: content, with: keys, for: purpose), CommandFailure.init(_:))
        // Agents refuse larger files; the signatures count.
        guard signed.bytes.count <= SignedDocument.largest else {
            throw bad(" is too large: signed, at most \(SignedDocument.largest) bytes")
        }
        if let output = invocation.value("output") {
            try NamedFile.replace(output, with: signed.bytes, mode: 0o644)
        } else {
            try invocation.console.write(bytes: signed.bytes)
        }
    }

    /// The line of a container for `container list`.
    ///
    /// - Parameters:
    ///   - container: the agent's description of it.
    ///   - now: the time, for ages and remaining times.
    private static func line(_ container: JSONValue, now: Timestamp) -> String {
        let id = container["id"]?.string ?? "?"
        let version = container["version"]?.integer.map { "version \($0)" } ?? "empty"
        // A time of the description; nil if the container does not have it.
        func time(_ key: String) -> Timestamp? {
            container[key]?.integer.map { Timestamp(milliseconds: Int64($0)) }
        }
        var parts = [version, container["open"] == false ? "opening" : container["source"]?.string ?? "?"]
        if let confirmed = time("confirmed_ms") {
            parts.append("confirmed \(HumanText.duration(now - confirmed)) ago")
        }
        if let later = container["held_back_version"]?.integer {
            parts.append("version \(later) is for others first")
        }
        if container["fresh"] == false {
            parts.append("stale")
        }
        if let end = time("preview_ends_ms") {
            parts.append("preview ends in \(HumanText.duration(end - now))")
        }
        if let end = time("expires_ms") {
            parts.append("expires in \(HumanText.duration(end - now))")
        }
        var text = "\(id): \(parts.joined(separator: ", "))"
        if let problem = container["problem"]?.string {
            text += "; \(problem)"
        }
        for refusal in container["settings_refused"]?.members ?? [] {
            text += "\n  refused: \(refusal.value.string ?? refusal.key)"
        }
        return text
    }
}
