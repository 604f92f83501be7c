extension Command {
    static let generate = Command(
        name: "generate", summary: "writes the files that are made of the tables of commands and settings",
        arguments: "[PATH]", argumentCount: 0...1,
        details:
            "Without a path, lists the paths; with one of them, prints its text. `scripts/generate` writes them all.",
        isHidden: true
    ) { invocation in
        guard let path = invocation.arguments.first else {
            for file in GeneratedFiles.all { try invocation.console.print(file.path) }
            return .success
        }
        guard let file = GeneratedFiles.all.first(where: { $0.path == path }) else {
            throw CommandFailure(.usage, "\(path) is not made of the tables; without a path, this lists those that are")
        }
        try invocation.console.write(file.text)
        return .success
    }
}
