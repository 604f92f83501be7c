@testable import Containers
import EventLoops
@testable import Model

/// The entry point of libFuzzer: any bytes as a container's document, under the address sanitizer. What is taken is compiled,
/// its tests run, and its rules applied to a few events. Traps when a promise is broken. `scripts/fuzz` builds and runs it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    do {
        tryOut(try ContainerDocument(reading: bytes))
    } catch {
        guard !error.description.isEmpty, !error.description.utf8.contains(0x0A) else { fatalError("not one line") }
    }
    return 0
}

private let events = [
    #"{"name":"a","id":"1","properties":{"a":1,"b":{"c":[1,"x"]},"a":"\u0041"},"a":null,"device":{"locale":"it_IT"}}"#,
    #"{"name":"Video clicked" , "a" : { } , "b" : [ {"c":1} ] ,"id":7}"#,
]

private func tryOut(_ document: ContainerDocument) {
    let now = Timestamp(milliseconds: 1_795_168_800_000)
    do {
        for test in document.tests.prefix(4) { _ = try test.failures(in: document) }
        let container = try CompiledContainer(document, mayCall: ["f"])
        for key in container.keys { _ = container.value(ofKey: key) { _ in 1 } }
        let engine = RuleEngine(random: { 4 })
        engine.use([container])
        for event in events { apply(engine, event, at: now) }
        let memory = engine.takeMemory().compactMapValues { $0 }
        engine.restore(memory)
    } catch {
        guard error.code == .expression || error.code == .limit else { fatalError("\(error)") }
    }
}

private func apply(_ engine: RuleEngine, _ event: String, at now: Timestamp) {
    let line = Array((event + "\n").utf8)
    let push = Array("{\"type\":\"data_layer\",\"event\":\"a\",\(event.dropFirst())\n".utf8)
    _ = push.withUnsafeBytes { engine.push($0, app: "app", at: now) { _ in "result" } }
    // What the rules leave may be the very bytes that they were given: it is read while those are there.
    let (fate, after) = line.withUnsafeBytes { line in
        (engine.apply(to: line, app: "app", priority: .normal, at: now) { _ in ["a": 1] }, Array(engine.line))
    }
    switch fate {
    case .kept:
        guard after.last == 0x0A, !after.dropLast().contains(0x0A) else { fatalError("not one line") }
        guard case .object(let members)? = try? JSONValue(parsing: Array(after.dropLast())) else { fatalError("no event") }
        guard case .string(let name)? = JSONValue.object(members)["name"], !name.isEmpty else { fatalError("no name") }
        guard JSONValue.object(members)["id"] != nil else { fatalError("no id") }
    case .discarded(let reason):
        guard !reason.isEmpty else { fatalError("no reason") }
    // What may be kept of it: a whole line, or nothing.
    case .tooLarge: guard after.isEmpty || after.last == 0x0A else { fatalError("not one line") }
    case .needs: fatalError("all results are there")
    }
}
