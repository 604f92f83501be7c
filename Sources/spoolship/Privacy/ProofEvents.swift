internal import Model

/// The events of the proof: what an app writes, with a marker in place of the value that has to be hidden.
struct ProofEvents {
    /// The events without the marker.
    let events: [JSONValue]
    /// The paths at which the marked value is put, as names of members from the outside in.
    let paths: [[String]]
    /// The marked value.
    let marker: String
    /// A text outside of the marked value, which no rule hides.
    let control: String
    /// Whether the app's `data_layer` lines are pushes. Those of logs are records like others, in which the
    /// member of a push is at another path.
    var hasPushes = true

    /// All lines that the app writes, for each path.
    var lines: [String] { paths.flatMap { path in lines(with: path) } }

    /// The lines that an app writes for one path: good ones, and each way of being wrong that takes another
    /// way through the agent, because each of these ways stores something: quarantine, dead letters, records,
    /// data layer, memory.
    ///
    /// Only the first event comes in all spellings, ten times as many lines: how a name is spelled does not
    /// depend on the event, and with many events they would take minutes.
    private func lines(with path: [String]) -> [String] {
        events.enumerated().flatMap { index, event -> [String] in
            // A good event with the marker and the control; the control's suffix names the shape.
            func shape(_ name: String, _ change: (JSONValue) -> JSONValue = { $0 }) -> String {
                let planted = ProofEvents.plant(.string(marker), at: path[...], in: event)
                return change(
                    ProofEvents.plant(.string("\(control)-\(name)"), at: ["privacy_control"], in: planted)
                )
                .description
            }
            // Adds a member to an event, at its end or at its beginning.
            func with(_ more: JSONValue.Member, before: Bool = false) -> (JSONValue) -> JSONValue {
                { .object(before ? [more] + ($0.members ?? []) : ($0.members ?? []) + [more]) }
            }
            let last = path.last ?? ""
            // A push sets properties directly, without the member `properties`.
            let pushed = path.count > 1 && path[0] == "properties" ? path.dropFirst() : path[...]
            let plain = shape("plain")
            // Larger than the 8 KiB that the proof's configuration allows for an event.
            let pad = JSONValue.Member("pad", .string(String(repeating: "x", count: 9000)))
            // The last name of the path with an escape in it (RFC 8259, section 7): the same name, in other
            // bytes.
            let first = "\\u" + String((last.unicodeScalars.first?.value ?? 0) + 0x10000, radix: 16).suffix(4)
            let escaped = first + String(last.dropFirst()).replacingAll(".", with: "\\u002e")
            let disguised = plain.replacingAll("\"\(last)\":", with: "\"\(escaped)\":")
            // The member twice: which of the two holds differs between parsers, so both must be hidden.
            let twice = plain.replacingAll("\"\(last)\":", with: "\"\(last)\":\"\(marker)\",\"\(last)\":")
            // The object of the path as the only element of a list.
            let list =
                path.count < 2
                ? plain
                : plain.replacingAll("\"\(path[0])\":{", with: "\"\(path[0])\":[{")
                    .replacingAll(",\"privacy_control\"", with: "],\"privacy_control\"")
            let shapes: [String] = [
                plain, shape("rejected"), disguised, twice,
                (try? JSONValue(parsing: list)) == nil ? plain : list,
                shape("record") { .object(($0.members ?? []).filter { $0.key != "name" }) },
                shape("large", with(pad)), shape("late", with(pad, before: true)),
                shape("push", with(.init("type", "data_layer"), before: true)),
                hasPushes
                    ? ProofEvents.plant(.string(marker), at: pushed, in: ["type": "data_layer"]).description
                    : plain,
                shape("timeless", with(.init("timestamp", "no time"))), String(plain.dropLast(2)),
                "\(last)=\(marker) and not JSON at all",
                shape("refused", with(.init("consent", false))),
            ]
            // Each way of being wrong, or of being stored elsewhere, in each spelling.
            let wellSpelled: [String] = [
                shape("spelled"), shape("rejected"),
                shape("pushed", with(.init("type", "data_layer"), before: true)),
                shape("untimed", with(.init("timestamp", "no time"))),
            ]
            return shapes + (index == 0 ? wellSpelled.flatMap { spelled($0, path) } : [])
        }
    }

    /// Ways to write the same event with other bytes: each of the marker's first characters as an escape, all
    /// of them, each character of the path's names, and blanks between the members.
    private func spelled(_ line: String, _ path: [String]) -> [String] {
        let value = "\"\(marker)\""
        func escaped(_ text: String, at place: Int) -> String {
            let unit = String(Array(text.utf16)[place], radix: 16, uppercase: place % 2 == 0)
            let escape = "\\u" + String(repeating: "0", count: max(0, 4 - unit.count)) + unit
            return String(text.prefix(place)) + escape + String(text.dropFirst(place + 1))
        }
        var found = (0..<15).map { line.replacingAll(value, with: "\"\(escaped(marker, at: $0))\"") }
        let all = marker.utf16.map { "\\u00" + String($0, radix: 16) }.joined()
        found.append(line.replacingAll(value, with: "\"\(all)\""))
        for name in path where name.utf8.allSatisfy({ $0 < 0x80 && $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) {
            found += (0..<min(name.utf8.count, 11)).map {
                line.replacingAll("\"\(name)\":", with: "\"\(escaped(name, at: $0))\":")
            }
        }
        return found + [line.replacingAll("\":", with: "\" :\t "), line.replacingAll(",\"", with: "\t,  \"")]
    }

    /// The same events as text: broken in the ways that the output of programs is (cut, doubled, coloured,
    /// with text around), as plain lines, and wrapped by Docker, whole and in pieces.
    var wrapped: [String] {
        // A line of Docker's json-file log.
        func line(_ log: String, _ stream: String = "stdout") -> String {
            (["log": .string(log), "stream": .string(stream)] as JSONValue).description
        }
        let planted = events.flatMap { event in
            paths.map { ProofEvents.plant(.string(marker), at: $0[...], in: event).description }
        }
        return planted.flatMap { good -> [String] in
            let behind = String(good.dropLast()) + ","
            let broken: [String] = [
                behind + "\"half\":\"\\ud83d\"}", behind + "\"cut\":\"of" + good, good + good, "[\(good)]",
                "got \(good)",
                "(" + behind.dropFirst().dropLast() + ")",
                good.replacingAll("\":", with: "\"\u{1B}[0m\u{1B}[1;39m:") + "\u{1B}[0m",
                behind,
            ]
            // Lines of the other stream between two pieces of one line: the reader must not join them.
            let pieces: [String] = [
                line(behind), line("other\n", "stderr"), line("\"m\":\"\(marker)"), line("b", "stderr"),
                line("\"}\n"),
            ]
            return broken + broken.map { line($0 + "\n") } + pieces + [line("\u{FEFF}\(good)\n")]
        } + [line("\(control)-text\n")]
    }

    /// An object with a value at a path; objects on the way are created, other values there replaced.
    private static func plant(
        _ value: JSONValue, at path: ArraySlice<String>, in object: JSONValue
    ) -> JSONValue {
        guard let first = path.first else { return value }
        let inner = plant(value, at: path.dropFirst(), in: object[first] ?? .object([]))
        return .object((object.members ?? []).filter { $0.key != first } + [.init(first, inner)])
    }
}
