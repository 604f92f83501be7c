import Testing

@testable import Journal

@Suite struct FieldOccurrencesTests {
    @Test("The first value of a field in each entry is told from further ones")
    func firsts() {
        var occurrences = FieldOccurrences(count: 2)
        for _ in 0..<3 {
            occurrences.beginEntry()
            let first = occurrences.isFirst(1)
            let second = occurrences.isFirst(1)
            let other = occurrences.isFirst(0)
            #expect(first && !second && other)
        }
    }
}
