import Containers
import Testing

@testable import Agent

/// The saving of a container's newest copy, without a database.
@Suite struct CopySavingTests {
    private func copy(_ version: Int) -> ContainerCopy {
        ContainerCopy(version: version, expires: nil, content: [UInt8(version)])
    }

    private func end(_ version: Int) -> ContainerNote { .succeeded(.network, version: version, isNew: true) }

    @Test("A fetched file is saved once its copy is accepted, and again after a failure")
    func files() {
        var saving = CopySaving()
        saving.noteFetched(copy(1), file: [1, 1])
        let other = saving.begin(copy(2))
        #expect(other == nil, "the file of a refused copy is not saved")
        saving.noteFetched(copy(3), file: [3, 3])
        let first = saving.begin(copy(3))
        let isLast = saving.end(copy(3), isSaved: false)
        let again = saving.begin(copy(3))
        #expect(first == [3, 3] && isLast && again == [3, 3])
        _ = saving.end(copy(3), isSaved: true)
        let unknown = saving.begin(copy(3))
        #expect(unknown == nil, "a saved file is forgotten")
    }

    @Test("An end is reported when the newest copy is saved")
    func ends() {
        var saving = CopySaving()
        let early = saving.hold(end(1))
        #expect(!early, "nothing is being saved")
        saving.noteFetched(copy(1), file: [1])
        _ = saving.begin(copy(1))
        let first = saving.hold(end(1))
        saving.noteFetched(copy(2), file: [2])
        _ = saving.begin(copy(2))
        let second = saving.hold(end(2))
        let older = saving.end(copy(1), isSaved: true)
        let newest = saving.end(copy(2), isSaved: true)
        #expect(first && second && !older && newest)
        let ends = saving.takeHeldEnds()
        #expect(ends == [end(1), end(2)])
        #expect(saving.takeHeldEndsIsEmpty)
    }
}

extension CopySaving {
    /// Whether no end is held.
    fileprivate var takeHeldEndsIsEmpty: Bool {
        var copy = self
        return copy.takeHeldEnds().isEmpty
    }
}
