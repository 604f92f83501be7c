internal import EventLoops
public import TimeZones

/// Properties of the machine as the member `device` of events.
public struct DeviceText: Sendable, Equatable {
    /// Members and their values, in order; empty if `device` has the time zone's offset only.
    public var members: [Member]
    /// Zone whose offset at the event's time is added as `time_zone_offset`, in minutes east of UTC; nil adds
    /// none.
    public var zone: TimeZoneRules?

    /// The machine's name as events have it; nil if they do not have it.
    public var hostName: String? { members.first { $0.name == "host_name" }?.value }

    /// A member and its text.
    public struct Member: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(members: [Member], zone: TimeZoneRules?) {
        self.members = members
        self.zone = zone
    }

    /// The object as JSON text for events of a time, and the span of times (`until` excluded) in which it
    /// stays the same: up to the zone's next change of offset. The text is empty if the object has no
    /// members.
    func rendered(at time: Timestamp) -> (text: [UInt8], from: Timestamp, until: Timestamp) {
        var text: [UInt8] = [.openBrace]
        func add(_ name: String, _ value: [UInt8]) {
            if text.count > 1 {
                text.append(.comma)
            }
            text += JSONText.quoted(name) + [.colon] + value
        }
        for member in members { add(member.name, JSONText.quoted(member.value)) }
        var from = Timestamp(nanoseconds: .min)
        var until = Timestamp(nanoseconds: .max)
        if let zone {
            let span = zone.span(at: time)
            from = span.from
            until = span.until
            add("time_zone_offset", Array(String(span.offset / 60).utf8))
        }
        guard text.count > 1 else { return ([], from, until) }
        return (text + [.closeBrace], from, until)
    }
}
