import TestKit
import Testing

extension EndToEnd {
    @Suite("The release binary")
    struct BinaryTests {
        private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        private static let wrapped = "_swift_stdlib_getScalarName"

        @Test("the function that the linker wraps exists in the Swift runtime; otherwise 550 KB would return")
        func wrappedFunctionExists() throws {
            let makefile = try contents(of: "\(BinaryTests.root)/Makefile")
            #expect(makefile.contains("--wrap=\(BinaryTests.wrapped)"))
            let stub = try contents(of: "\(BinaryTests.root)/Sources/CShims/CBuild/names.c")
            #expect(stub.contains("intptr_t __wrap_\(BinaryTests.wrapped)("))

            let target = try run("swiftc", ["-print-target-info"])
            try #require(target.code == 0, "\(target.text)")
            let line = try #require(
                target.text.split(separator: "\n").first { $0.contains("\"runtimeResourcePath\"") })
            let resources = try #require(line.split(separator: "\"").dropFirst(2).first { $0.hasPrefix("/") })
            let symbols = try run("nm", ["--defined-only", "\(resources)_static/linux/libswiftCore.a"])
            func defines(_ name: String) -> Bool {
                symbols.text.split(separator: "\n").contains { $0.hasSuffix(" T \(name)") }
            }
            #expect(
                defines(BinaryTests.wrapped),
                "the runtime has no \(BinaryTests.wrapped) any more; see docs/contributing/what-is-left-out-of-the-binary.md"
            )
            #expect(!defines(BinaryTests.wrapped + "2"))
        }
    }
}
