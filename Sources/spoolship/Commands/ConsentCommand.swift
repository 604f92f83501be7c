internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// The command for what an operator decides about consent.
enum ConsentCommand {
    /// Sets or lists the consent of apps by purpose.
    static let consent = Command(
        name: "consent", summary: "sets or lists consent by app and purpose; survives restarts",
        arguments: "[APP PURPOSE on|off|default]", argumentCount: 0...3,
        details: """
            off: no event of the app is sent to destinations with this purpose, whatever the event says; \
            queued ones are withheld, too, before the command ends. on: its events go there unless they, or \
            the app's data layer, say otherwise. default: the events, the data layer and \
            `[apps.NAME] consent` decide. Without arguments it lists what was set. Events that were withheld \
            do not come back.
            """
    ) { invocation in
        let words = invocation.arguments
        guard !words.isEmpty else { return try list(invocation) }
        let answers: [String: JSONValue] = ["on": true, "off": false, "default": .null]
        guard words.count == 3, let answer = answers[words[2]] else {
            throw CommandFailure(.usage, "consent needs APP PURPOSE and on, off or default, or no argument")
        }
        // The agent waits ten seconds for batches in flight, and may have to look through a large queue.
        let result = try invocation.ask(
            "PUT", "/v1/consent",
            body: ["app": .string(words[0]), "purpose": .string(words[1]), "on": answer],
            timeout: .seconds(600))
        var text = "\(words[0]), \(words[1]): \(words[2])"
        if words[2] == "off" {
            let withheld = Int(result["withheld"]?.integer ?? 0)
            text += "; \(HumanText.count(withheld)) queued deliveries withheld"
        }
        if let inFlight = result["in_flight"]?.integer, inFlight > 0 {
            text += "; \(HumanText.count(Int(inFlight))) are in flight and may arrive"
        }
        try invocation.console.print(text)
        if words[2] != "default" {
            try UnknownApp(words[0], in: result)?.tell(
                on: invocation, undoneBy: "consent \(words[0]) \(words[1]) default")
        }
    }

    private static func list(_ invocation: Invocation) throws {
        let answer = try invocation.ask("GET", "/v1/consent")
        let set = answer["consent"]?.array ?? []
        let disabled = (answer["disabled"]?.array ?? []).compactMap(\.string)
        if set.isEmpty, disabled.isEmpty {
            try invocation.console.print("nothing is set: events and settings decide")
        }
        for entry in set {
            let answer = entry["on"]?.bool == true ? "on" : "off"
            try invocation.console.print(
                "\(entry["app"]?.string ?? "") \(entry["purpose"]?.string ?? "") \(answer)")
        }
        for app in disabled {
            try invocation.console.print("\(app): collection is off (`spoolship enable --app \(app)`)")
        }
    }
}
