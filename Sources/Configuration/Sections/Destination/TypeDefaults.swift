internal import Model

/// A default that only destinations of one type or format have.
struct TypeDefault: Sendable {
    /// The type.
    private let kind: DestinationSettings.Kind
    /// The format; nil for all formats.
    fileprivate let format: HTTPSettings.Format?
    /// Key of the setting.
    let key: String
    /// Sets the default of the type; or that of all destinations, if `isForAll`.
    fileprivate let set: @Sendable (inout DestinationSettings, _ isForAll: Bool) -> Void

    /// Origin of the value: `type s3`.
    var name: String { format.map { "format \($0.rawValue)" } ?? "type \(kind.rawValue)" }

    /// Whether the default applies to a destination.
    fileprivate func holds(_ destination: DestinationSettings) -> Bool {
        destination.kind == kind && (format == nil || destination.format == format)
    }

    /// All defaults of types and formats.
    static let all: [TypeDefault] =
        [
            // A request costs money for each object, and readers open each object: fewer, larger objects.
            of(.s3, "interval.every", \.own.interval, .every(.seconds(60))),
            of(.s3, "batch_events.full", \.own.batchEvents, 50_000),
            of(.s3, "batch_events.max", \.own.batchMostEvents, 50_000),
            of(.s3, "batch_size", \.own.batchSize, 8 << 20), of(.s3, "compression", \.compression, .zstd),
            // A batch may be one message, and servers accept 1 MiB with headers by default (max_payload).
            of(.nats, "batch_size", \.own.batchSize, 512 << 10),
        ]
        // App Center's SDKs send at most 50 logs in a request; the Measurement Protocol accepts 25 events.
        + [("batch_events.full", \.own.batchEvents), ("batch_events.max", \.own.batchMostEvents)].flatMap {
            (key: String, place: any WritableKeyPath<DestinationSettings, Int?> & Sendable) in
            [of(.http, key, place, 50, format: .appCenter), of(.http, key, place, 25, format: .ga4)]
        }

    /// A default for a setting.
    private static func of<Value: Sendable>(
        _ kind: DestinationSettings.Kind, _ key: String,
        _ place: any WritableKeyPath<DestinationSettings, Value> & Sendable, _ value: Value,
        format: HTTPSettings.Format? = nil
    ) -> TypeDefault {
        TypeDefault(kind: kind, format: format, key: key) {
            $0[keyPath: place] = $1 ? DestinationSettings()[keyPath: place] : value
        }
    }
}

extension TypeDefault {
    /// Gives each destination the defaults of its type and format, unless it or `[dispatch]` sets another
    /// value.
    ///
    /// - Parameter origins: where settings come from, by path; defaults of types are noted there.
    static func apply(to destinations: inout [DestinationSettings], _ origins: inout [String: Origin]) {
        for index in destinations.indices {
            for row in all where row.holds(destinations[index]) {
                let path = "destination.\(SettingValue.key(destinations[index].name)).\(row.key)"
                // What a service accepts is a fact: `[dispatch]` does not change the defaults of formats.
                let isSetForAll = row.format == nil && origins["dispatch.\(row.key)"] != nil
                switch origins[path] {
                case nil, .type:
                    row.set(&destinations[index], isSetForAll)
                    origins[path] = isSetForAll ? nil : .type(row.name)
                    // A part of a pair, which is listed as a whole.
                    if row.key.contains("."), let dot = path.lastIndex(of: ".") {
                        let pair = String(path[..<dot])
                        origins[pair] = origins[pair] ?? origins[path]
                    }
                default: break
                }
            }
        }
    }
}
