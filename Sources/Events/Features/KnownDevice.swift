internal import EventLoops

/// The properties of the machine and of one app, with the text that was made of them last.
struct KnownDevice {
    /// A device as JSON text, with the span of times in which it stays the same.
    typealias Rendered = (text: [UInt8], from: Timestamp, until: Timestamp)

    /// The properties; nil for none.
    private let device: DeviceText?
    /// The last text; used again for times within its span.
    private var last: Rendered?

    /// No properties.
    init() { device = nil }

    /// The machine's properties with those of the app, its version and build.
    init(_ machine: DeviceText?, _ settings: AppOptions) {
        var device = machine
        if let version = settings.version {
            device?.members.append(DeviceText.Member("app_version", version))
        }
        if let build = settings.build {
            device?.members.append(DeviceText.Member("app_build", build))
        }
        self.device = device
    }

    /// The text for events of a time.
    mutating func text(at time: Timestamp) -> Rendered {
        if let last, time >= last.from, time < last.until { return last }
        let rendered =
            device?.rendered(at: time) ?? ([], Timestamp(nanoseconds: .min), Timestamp(nanoseconds: .max))
        last = rendered
        return rendered
    }
}
