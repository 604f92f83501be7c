import Control
import Testing

@testable import Agent

@Suite("The switch of collection")
struct CollectionSwitchTests {
    @Test("one command at a time: a second one is refused, and told what is under way")
    func oneAtATime() throws {
        var collection = CollectionSwitch()
        #expect(collection.isOn)
        try collection.begin()
        #expect(refusal(&collection)?.contains("another enable or disable") == true)
        collection.turn(on: false)
        collection.beginDiscarding()
        #expect(refusal(&collection)?.contains("still being deleted") == true)
        collection.end()
        #expect(!collection.isOn)
        try collection.begin()
        collection.turn(on: true)
        collection.end()
        #expect(collection.isOn && collection.work == nil)
    }

    @Test("a deletion that an earlier process left refuses commands until it is over")
    func leftDeletion() throws {
        var collection = CollectionSwitch(isOn: false)
        collection.beginDiscarding()
        #expect(refusal(&collection) != nil)
        collection.end()
        try collection.begin()
    }

    /// The message of the refusal; nil if a command may begin.
    private func refusal(_ collection: inout CollectionSwitch) -> String? {
        do throws(ControlRefusal) {
            try collection.begin()
            return nil
        } catch {
            return error.message
        }
    }
}
