import Testing

@testable import Outputs

/// What a transfer keeps of an answer, without a server.
@Suite struct ReceivedAnswerTests {
    /// Adds a body of that many bytes; returns whether the transfer goes on.
    private func add(_ count: Int, to answer: inout ReceivedAnswer) -> Bool {
        [UInt8](repeating: 7, count: count).withUnsafeBytes { answer.addBody($0) }
    }

    @Test("A body is kept up to the limit, and read on for a while beyond it")
    func limit() {
        var answer = ReceivedAnswer()
        answer.begin(limit: 10)
        var goesOn = add(10, to: &answer)
        #expect(goesOn && !answer.isCut)
        goesOn = add(1, to: &answer)
        #expect(goesOn && answer.isCut && answer.kept.count == 10)
        goesOn = add(ReceivedAnswer.patience - 1, to: &answer)
        #expect(goesOn)
        goesOn = add(1, to: &answer)
        #expect(!goesOn && answer.kept.count == 10)
    }

    @Test("A head has an end and a bound")
    func head() {
        var answer = ReceivedAnswer()
        answer.begin(limit: 0)
        #expect(!answer.hasBegun)
        let fits = answer.addHead(ReceivedAnswer.largestHead, isEnd: false)
        #expect(fits)
        #expect(answer.hasBegun && !answer.hasHead)
        let stillFits = answer.addHead(2, isEnd: true)
        #expect(!stillFits && answer.hasHead)
    }

    @Test("An answer is whole with its head and the announced number of bytes, kept or not")
    func whole() {
        var answer = ReceivedAnswer()
        answer.begin(limit: 1)
        #expect(!answer.isWhole(length: 0))
        _ = answer.addHead(2, isEnd: true)
        #expect(answer.isWhole(length: 0))
        _ = add(5, to: &answer)
        #expect(answer.isWhole(length: 5) && !answer.isWhole(length: 1))
    }

    @Test("The next answer begins with nothing of the last one")
    func again() {
        var answer = ReceivedAnswer()
        answer.begin(limit: 1)
        _ = answer.addHead(2, isEnd: true)
        _ = add(5, to: &answer)
        answer.unreceived = 3
        answer.begin(limit: 2)
        #expect(!answer.hasBegun && !answer.hasHead && !answer.isCut && answer.kept.isEmpty)
        #expect(answer.unreceived == 0)
        _ = add(2, to: &answer)
        #expect(!answer.isCut)
    }
}
