import Foundation
import SpoolshipClient
import Synchronization
import TestKit
import Testing

@Suite("Values of containers")
struct ContainerValuesTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/values.json" }

    init() throws { directory = try TemporaryDirectory() }

    private func publish(_ values: String) throws {
        let text = #"{"format": 1, "values": \#(values), "containers": []}"#
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    @Test("tm19: typed getters give the type's standard value for a missing value or one of another type")
    func getters() throws {
        try publish(
            #"{"text": "a\"\u00e9\ud83d\ude00\n", "count": 12, "share": 0.25, "whole": 3.0, "on": true, "digits": "42", "null": null, "list": [1, {"a": []}]}"#
        )
        let values = ContainerValues(path: path)
        #expect(values.string("text") == "a\"é😀\n")
        #expect(
            values.integer("count") == 12 && values.double("count") == 12 && values.string("count") == "12")
        #expect(values.double("share") == 0.25 && values.integer("share") == 0)
        #expect(values.integer("whole") == 3 && values.integer("digits") == 42)
        #expect(values.boolean("on") && !values.boolean("count") && values.string("on") == "true")
        #expect(values.contains("list") && values.string("list") == "")
        #expect(!values.contains("none"))
        #expect(values.string("none") == "" && values.integer("none") == 0)
        #expect(values.double("none") == 0 && !values.boolean("none"))
    }

    @Test("tm19: without an agent all values are missing; a garbled file leaves the last good values")
    func noFile() throws {
        let values = ContainerValues(path: path)
        #expect(values.string("text") == "")
        try publish(#"{"text": "good"}"#)
        let later = ContainerValues(path: path)
        #expect(later.string("text") == "good")
        try Data("{".utf8).write(to: URL(fileURLWithPath: path))
        #expect(ContainerValues(path: path).string("text") == "")
        #expect(later.string("text") == "good")
    }

    @Test("tm19: a change is reported, and the new value is readable")
    func changes() throws {
        try publish(#"{"n": 1}"#)
        let values = ContainerValues(path: path)
        #expect(values.integer("n") == 1)
        let told = Mutex(0)
        let id = try #require(values.observe { told.withLock { $0 += 1 } })
        try publish(#"{"n": 2}"#)
        let deadline = Date().addingTimeInterval(30)
        while told.withLock({ $0 }) == 0, Date() < deadline { usleep(20_000) }
        #expect(told.withLock { $0 } == 1)
        #expect(values.integer("n") == 2)
        values.stopObserving(id)
    }
}
