import Spool
import Testing

@Suite("Spool options")
struct SpoolOptionsTests {
    @Test("a source without a producer is a drop file")
    func sourcesTellTheirKind() {
        #expect(SpoolSource(app: "a", path: "a/x.json", producer: nil).isDropFile)
        #expect(!SpoolSource(app: "a", path: "a/x.jsonl", producer: [1]).isDropFile)
    }
}
