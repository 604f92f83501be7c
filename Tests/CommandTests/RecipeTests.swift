import TestKit
import Testing

@testable import spoolship

/// docs/recipes.md, pasted as it is printed.
@Suite("Recipes")
struct RecipeTests {
    /// A question of the page with the blocks of its answer.
    struct Recipe: CustomTestStringConvertible {
        let title: String
        let blocks: [String]

        var testDescription: String { title }
    }

    private static let page = (try? readFile("\(GoldenFile.root)/docs/recipes.md")) ?? ""

    static let recipes = page.split(separator: "\n## ", omittingEmptySubsequences: true).dropFirst().map {
        section in
        let title = section.prefix { $0 != "\n" }
        let parts = String(section).components(between: "```toml\n", and: "\n```")
        return Recipe(title: String(title), blocks: parts)
    }

    @Test("the page has twenty recipes, each in its table of contents")
    func twenty() {
        #expect(RecipeTests.recipes.count == 20)
        for recipe in RecipeTests.recipes {
            let anchor = recipe.title.lowercased().filter {
                $0.isLetter || $0.isNumber || $0 == " " || $0 == "-"
            }
            .map { $0 == " " ? "-" : String($0) }.joined()
            #expect(RecipeTests.page.contains("](#\(anchor))"), "\(anchor)")
        }
    }

    @Test("each block is a configuration without mistakes and warnings", arguments: RecipeTests.recipes)
    func checks(recipe: Recipe) throws {
        #expect(recipe.blocks.count == 1)
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/spoolship.toml"
        for block in recipe.blocks {
            let base =
                block.contains("[[destination]]")
                ? "" : "[[destination]]\nname = \"main\"\ntype = \"stdout\"\n"
            #expect(block.split(separator: "\n").count <= 11)
            try writeFile(path, base + block + "\n")
            let (code, kept) = KeptConsole.run("check", "--text-only", "--config", path)
            #expect(code == .success && kept.errorOutput == "", "\(kept.errorOutput)")
        }
    }

    /// What `check --sample` prints of the rules of a recipe for these lines of the app `shop`.
    private func sample(_ title: String, _ lines: String...) throws -> String {
        let recipe = try #require(RecipeTests.recipes.first { $0.title == title })
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/spoolship.toml"
        let logs = "[apps.shop]\nread = [\"\(directory.path)/*.log\"]\n"
        let base =
            recipe.blocks[0].contains("[[destination]]")
            ? "" : "[[destination]]\nname = \"main\"\ntype = \"stdout\"\n"
        try writeFile(path, base + logs + recipe.blocks[0] + "\n")
        try writeFile("\(directory.path)/a.log", lines.joined(separator: "\n") + "\n")
        let (code, kept) = KeptConsole.run("check", "--sample", "\(directory.path)/a.log", "--config", path)
        #expect(code == .success, "\(kept.errorOutput)")
        return kept.output
    }

    @Test("the recipes with rules do what they promise, by check --sample")
    func behaviour() throws {
        let debug = try sample(
            "Drop debug lines", #"{"level":"debug","msg":"a"}"#, #"{"level":"info","msg":"b"}"#)
        #expect(debug.contains("rules: apply to 1 of 2 lines\n  1  no debug lines\n1: no debug lines\n"))
        #expect(debug.contains("+ (discarded)"))
        let health = try sample(
            "Drop health checks", "10.0.0.1 GET /healthz 200", #"{"path":"/healthz"}"#, #"{"path":"/"}"#)
        #expect(health.contains("rules: apply to 2 of 3 lines"))
        let noisy = try sample(
            "Limit a noisy app", #"{"level":"info","timestamp":"2026-11-29T00:00:00Z"}"#,
            #"{"level":"error"}"#)
        #expect(noisy.contains("rules: apply to 1 of 2 lines"))
        let field = try sample("Add a field to every event", #"{"msg":"a"}"#)
        #expect(field.contains(#""env":"prod","service":{"version":"2.1.0"}"#))
        #expect(try !sample("Keep one event in ten", #"{"msg":"a"}"#).contains("apply to 1"))
        let renamed = try sample(
            "Rename and remove fields", #"{"usr":"ann","debug":1,"request":{"headers":{},"id":7}}"#)
        #expect(renamed.contains(#"+ {"user":"ann","request":{"id":7}"#))
        let masked = try sample("Mask e-mail and IP addresses", "login of ann@example.com from 192.0.2.7")
        #expect(masked.contains(#"+ {"message":"login of [redacted] from [redacted]""#))
        let pager = try sample("Send errors to a second destination, too", #"{"level":"fatal","msg":"a"}"#)
        #expect(pager.contains("1: rule 1 -> main, pager"))
        #expect(
            try sample("Send errors first", #"{"level":"error","msg":"a"}"#).contains("1: rule 1, critical"))
    }
}

extension String {
    /// The texts between two marks, in their order.
    fileprivate func components(between begin: String, and end: String) -> [String] {
        var found: [String] = []
        var rest = self[...]
        while let start = rest.firstRange(of: begin) {
            rest = rest[start.upperBound...]
            guard let stop = rest.firstRange(of: end) else { break }
            found.append(String(rest[..<stop.lowerBound]))
            rest = rest[stop.upperBound...]
        }
        return found
    }
}
