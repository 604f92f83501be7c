internal import Model

/// A default that destinations of a type or format have, and others have not.
struct TypeDefault: Sendable {
    private let kind: DestinationSettings.Kind
    /// Nil for all formats.
    fileprivate let format: DestinationSettings.Format?
    let key: String
    /// Sets it, or what holds for all.
    fileprivate let set: @Sendable (inout DestinationSettings, _ isForAll: Bool) -> Void

    /// Whose it is: `type s3`.
    var name: String { format.map { "format \($0.rawValue)" } ?? "type \(kind.rawValue)" }

    fileprivate func holds(_ destination: DestinationSettings) -> Bool {
        destination.kind == kind && (format == nil || destination.format == format)
    }

    static let all: [TypeDefault] =
        [
            // An object costs what a request does, and each is a file for its readers.
            of(.s3, "interval", \.own.interval, .every(.seconds(60))),
            of(.s3, "batch_events", \.own.batchEvents, 50_000),
            of(.s3, "batch_most_events", \.own.batchMostEvents, 50_000),
            of(.s3, "batch_size", \.own.batchSize, 8 << 20), of(.s3, "compression", \.compression, .zstd),
            // A batch may be a message, and a server takes 1 MiB with the headers by default (max_payload).
            of(.nats, "batch_size", \.own.batchSize, 512 << 10),
        ]
        // App Center's SDKs send at most 50 logs in a container; the Measurement Protocol takes 25 events in a request.
        + [("batch_events", \.own.batchEvents), ("batch_most_events", \.own.batchMostEvents)].flatMap {
            (key: String, place: any WritableKeyPath<DestinationSettings, Int?> & Sendable) in
            [of(.http, key, place, 50, format: .appCenter), of(.http, key, place, 25, format: .ga4)]
        }

    private static func of<Value: Sendable>(
        _ kind: DestinationSettings.Kind, _ key: String,
        _ place: any WritableKeyPath<DestinationSettings, Value> & Sendable, _ value: Value,
        format: DestinationSettings.Format? = nil
    ) -> TypeDefault {
        TypeDefault(kind: kind, format: format, key: key) {
            $0[keyPath: place] = $1 ? DestinationSettings()[keyPath: place] : value
        }
    }
}

extension Settings {
    /// Gives each destination the defaults of its type and format, where neither it nor `[dispatch]` says otherwise.
    mutating func applyTypeDefaults() {
        for index in destinations.indices {
            for row in TypeDefault.all where row.holds(destinations[index]) {
                let path = "destination.\(SettingValue.key(destinations[index].name)).\(row.key)"
                // What a service takes is no matter of taste: `[dispatch]` leaves the defaults of formats alone.
                let isSetForAll = row.format == nil && origins["dispatch.\(row.key)"] != nil
                switch origins[path] {
                case nil, .type:
                    row.set(&destinations[index], isSetForAll)
                    origins[path] = isSetForAll ? nil : .type(row.name)
                default: break
                }
            }
        }
    }
}
