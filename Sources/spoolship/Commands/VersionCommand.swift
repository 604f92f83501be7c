internal import Model

extension Command {
    static let version = Command(
        name: "version", summary: "prints version, commit, toolchain and the libraries it is linked with",
        options: [.json]
    ) { invocation in
        let facts: [(String, String)] =
            [("version", Build.version), ("commit", Build.commit), ("toolchain", Build.toolchain)]
            + Build.libraries.map { ($0.name, $0.version) }
        if invocation.has("json") {
            let members = facts.map { JSONValue.Member($0.0, .string($0.1)) }
            try invocation.console.print(JSONValue.object(members).description)
        } else {
            try invocation.console.print("spoolship \(Build.version)")
            for fact in facts.dropFirst() {
                try invocation.console.print("  \(HelpText.pad(fact.0, to: 15))\(fact.1)")
            }
        }
    }
}
