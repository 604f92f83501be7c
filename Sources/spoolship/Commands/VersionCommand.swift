internal import Model

enum VersionCommand {
    /// Prints what this binary was built from, and the versions of the libraries that it has loaded: on
    /// another release of Debian those differ from the ones it was built with.
    static let version = Command(
        name: "version", summary: "prints version, commit, toolchain and the libraries it is linked with",
        options: [.json]
    ) { invocation in
        let facts: [(String, String)] =
            [("version", Build.version), ("commit", Build.commit), ("toolchain", Build.toolchain)]
            + Build.libraries.map { ($0.name, $0.version) }
        let lines = facts.dropFirst().map { "  \(HelpText.pad($0.0, to: 15))\($0.1)\n" }
        try invocation.show(
            .object(facts.map { JSONValue.Member($0.0, .string($0.1)) }),
            or: "spoolship \(Build.version)\n" + lines.joined())
    }
}
