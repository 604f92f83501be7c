import Model
import Testing

@testable import Configuration

@Suite("Defaults of types and formats")
struct TypeDefaultTests {
    private func read(_ text: String) throws -> Settings {
        try Settings.read([ConfigurationText(file: "t.toml", text: text)]).settings
    }

    private let archive = """
        [[destination]]
        name = "archive"
        type = "s3"
        s3.bucket = "events"
        s3.credentials = "instance"
        s3.region = "eu-central-1"

        """

    @Test("a bucket gets large objects in zstd, and `check --print` shows the origin of that default")
    func bucket() throws {
        let settings = try read(archive)
        let dispatch = settings.dispatch(for: settings.destinations[0])
        #expect(dispatch.interval == .every(.seconds(60)) && dispatch.batchSize == 8 << 20)
        #expect(dispatch.batchEvents == 50_000 && dispatch.batchMostEvents == 50_000)
        #expect(settings.destinations[0].compression == .zstd)
        #expect("\(settings.origin(of: "destination.archive.batch_size"))" == "default of type s3")
        #expect(
            settings.effective.contains {
                $0.path == "destination.archive.batch_events"
                    && $0.value?.toml == "{ full = 50000, max = 50000 }"
            })
        #expect("\(settings.origin(of: "destination.archive.parallel_batches"))" == "default")
    }

    @Test(
        "written settings, for the destination or for all, override a type's defaults, also from a container")
    func written() throws {
        let settings = try read(
            "dispatch.interval = \"9s\"\ndispatch.batch_events = 70\n\(archive)compression = \"gzip\"\n")
        func dispatch(_ settings: Settings) -> DispatchSettings {
            settings.dispatch(for: settings.destinations[0])
        }
        #expect(dispatch(settings).interval == .every(.seconds(9)) && dispatch(settings).batchEvents == 70)
        #expect(dispatch(settings).batchMostEvents == 50_000 && settings.destinations[0].compression == .gzip)
        let changed = try settings.setting(
            "dispatch.batch_most_events", to: .integer(90), origin: .container("GTM-1"))
        #expect(dispatch(changed).batchMostEvents == 90)
        #expect(changed.origin(of: "destination.archive.batch_events.max") == .standard)
    }

    @Test(
        "limits of a service hold whatever `[dispatch]` says", arguments: [("app_center", 50), ("ga4", 25)])
    func limits(format: String, most: Int) throws {
        let text = """
            dispatch.batch_most_events = 3000
            [[destination]]
            name = "main"
            url = "https://a.example/x"
            format = "\(format)"
            token = "t"
            measurement_id = "G-1"

            """
        let settings = try read(format == "ga4" ? text : text.replacing("measurement_id = \"G-1\"", with: ""))
        let dispatch = settings.dispatch(for: settings.destinations[0])
        #expect(dispatch.batchEvents == most && dispatch.batchMostEvents == most)
        #expect("\(settings.origin(of: "destination.main.batch_events"))" == "default of format \(format)")
    }
}
