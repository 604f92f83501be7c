// swift-tools-version: 6.2

import PackageDescription

/// What every Swift target is built with: Swift 6 mode, warnings are errors, upcoming features on.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
]

/// Modules whose tests compute: debug builds optimise them too, with their assertions, which makes those
/// tests three to five times as fast. The others, and the tests themselves, are built in a third of the time
/// without.
let computing: Set = [
    "Configuration", "Delivery", "Digests", "EventLoops", "Events", "Frames", "Logs", "Metrics", "Model",
    "Queue",
    "Schemas", "Spool", "TestKit", "TextFormats", "TimeZones",
]

/// Modules that do nothing for a single event: release builds make them small instead of fast.
let small: Set = ["Agent", "Configuration", "Control", "Metrics", "spoolship"]

/// What a module of the agent is built with.
func settings(of module: String) -> [SwiftSetting] {
    let quick = SwiftSetting.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))
    let short = SwiftSetting.unsafeFlags(["-Osize"], .when(configuration: .release))
    return strict + (computing.contains(module) ? [quick] : []) + (small.contains(module) ? [short] : [])
}

/// A Debian library that Swift imports by its own module map.
func system(_ name: String, _ pkgConfig: String, _ package: String) -> Target {
    .systemLibrary(
        name: name, path: "Sources/CShims/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// The few C or C++ lines that Swift cannot import by itself.
func shim(
    _ name: String, _ dependencies: [Target.Dependency] = [], linked: String? = nil,
    under folder: String = "Sources/CShims"
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "\(folder)/\(name)",
        linkerSettings: linked.map { [.linkedLibrary($0)] } ?? [])
}

/// A module of the agent. Modules stand in the order of the data's way: each imports only modules above it.
/// DESIGN.md beside the sources says why they are as they are.
func module(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(
        name: name, dependencies: dependencies, exclude: ["DESIGN.md"],
        swiftSettings: settings(of: name))
}

/// A module's tests, with their fixtures beside them.
func tests(_ name: String, _ dependencies: [Target.Dependency], fixtures: Bool = false) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.init(stringLiteral: name)] + dependencies,
        exclude: fixtures ? ["Fixtures"] : [], swiftSettings: strict)
}

/// The commit that `spoolship version` prints; set by the Makefile, letters and digits only.
let commit = Context.environment["SPOOLSHIP_COMMIT"].flatMap { text in
    !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") } ? text : nil
}

/// The linker of the release binary; set by the Makefile.
let linker = Context.environment["SPOOLSHIP_LINKER"]

let package = Package(
    name: "spoolship",
    products: [.library(name: "SpoolshipClient", targets: ["SpoolshipClient"])],
    targets: [
        shim("CLinux"),
        system("CSQLite", "sqlite3", "libsqlite3-dev"),
        system("CZstd", "libzstd", "libzstd-dev"),
        shim("CGzip"),
        system("CZlib", "zlib", "zlib1g-dev"),
        system("CCurl", "libcurl", "libcurl4-openssl-dev"),
        system("COpenSSL", "openssl", "libssl-dev"),

        // EventLoops
        module("EventLoops", ["CLinux"]),
        tests("EventLoops", []),

        // Model
        shim("CScan"),
        module("Model", ["CScan", "EventLoops"]),
        tests("Model", ["TestKit"]),

        // Digests
        module("Digests", ["COpenSSL", "Model"]),
        tests("Digests", ["Model", "TestKit"]),

        // Logs
        module("Logs", ["EventLoops"]),
        tests("Logs", ["EventLoops", "TestKit"]),

        // Frames
        module("Frames", ["EventLoops", "Model", "CGzip", "CZlib", "CZstd"]),
        tests("Frames", ["EventLoops", "Model", "TestKit"]),

        // Configuration
        shim("CTOML"),
        module("Configuration", ["CTOML", "EventLoops", "Logs", "Model"]),
        tests("Configuration", ["Logs", "Model", "TestKit"], fixtures: true),

        // Metrics
        module("Metrics", ["EventLoops", "Model", "Logs"]),
        tests("Metrics", ["Model", "TestKit"], fixtures: true),

        // Spool
        module("Spool", ["CLinux", "EventLoops", "Frames", "Logs", "Model"]),
        tests("Spool", ["CLinux", "EventLoops", "Frames", "Logs", "Model", "TestKit"], fixtures: true),

        // TextFormats
        module("TimeZones", ["EventLoops", "Model"]),
        tests("TimeZones", ["EventLoops", "TestKit"]),
        // The Makefile names the archive for the package: docs/contributing/one-package-for-newer-systems.md.
        shim("CRE2", linked: Context.environment["SPOOLSHIP_RE2"] ?? "re2"),
        module("TextFormats", ["CRE2", "CScan", "EventLoops", "TimeZones"]),
        tests("TextFormats", ["CRE2", "EventLoops", "Model", "TestKit", "TimeZones"], fixtures: true),

        // Events
        module("Events", ["CScan", "EventLoops", "Model", "TextFormats", "TimeZones"]),
        tests("Events", ["EventLoops", "Model", "TestKit", "TextFormats", "TimeZones"], fixtures: true),
        shim("CMaxMind"),
        module("Host", ["CMaxMind", "EventLoops", "Events", "Model", "TimeZones"]),
        tests("Host", ["Events", "TestKit", "TimeZones"]),

        // Containers
        shim("CPlist"),
        module(
            "Containers",
            [
                "CLinux", "COpenSSL", "CPlist", "CRE2", "Digests", "EventLoops", "Events", "Logs", "Model",
                "Schemas",
            ]),
        tests("Containers", ["EventLoops", "Events", "Model", "Schemas", "TestKit"]),

        // Schemas
        module("Schemas", ["CRE2", "EventLoops", "Events", "Model"]),
        tests("Schemas", ["EventLoops", "Model", "TestKit"]),

        // Journal
        shim("CJournal"),
        module("Journal", ["CJournal", "EventLoops", "Events", "Logs", "Model"]),
        tests("Journal", ["EventLoops", "Events", "Logs", "Model", "TestKit"]),

        // Intake
        module(
            "Intake",
            [
                "CLinux", "Containers", "EventLoops", "Events", "Frames", "Host", "Logs", "Model", "Schemas",
                "Spool",
                "TextFormats",
            ]),
        tests(
            "Intake",
            [
                "Containers", "Control", "EventLoops", "Events", "Frames", "Logs", "Model", "Queue",
                "Schemas", "Spool", "TestKit",
            ]),

        // Queue
        .target(
            name: "Queue", dependencies: ["CLinux", "EventLoops", "Model", "Logs", "Frames", "CSQLite"],
            exclude: ["DESIGN.md"],
            resources: [.embedInCode("schema.sql")], swiftSettings: settings(of: "Queue")),
        tests("Queue", ["CSQLite", "EventLoops", "Model", "Logs", "Frames", "TestKit"], fixtures: true),

        // Delivery
        shim("CNetlink"),
        module("Delivery", ["CNetlink", "EventLoops", "Model", "Logs", "TimeZones"]),
        tests("Delivery", ["CNetlink", "EventLoops", "Model", "Logs", "Queue", "TestKit", "TimeZones"]),

        // Outputs
        shim("CKafka"),
        module(
            "Outputs",
            [
                "Digests", "EventLoops", "Model", "Logs", "Frames", "Events", "CCurl", "CKafka", "COpenSSL",
                "CScan",
            ]),
        tests(
            "Outputs",
            [
                "Digests", "EventLoops", "Events", "Model", "Logs", "Frames", "Receiver", "TestKit",
                "COpenSSL",
            ],
            fixtures: true),

        // Control
        module("Control", ["CLinux", "EventLoops", "Model", "Metrics"]),
        tests("Control", ["EventLoops", "Metrics", "Model", "TestKit"]),

        // Receiver
        module("Receiver", ["EventLoops", "Events", "Model", "Frames", "Control", "COpenSSL"]),
        tests("Receiver", ["EventLoops", "Model", "Frames", "Outputs", "TestKit"]),

        // Agent
        .target(
            name: "Agent",
            dependencies: [
                "CLinux", "Digests", "EventLoops", "Model", "Logs", "Frames", "Configuration", "Metrics",
                "Spool",
                "Events", "Containers", "Intake", "Journal", "Queue", "Delivery", "Outputs", "Control",
                "Host",
                "Schemas", "TextFormats", "TimeZones",
            ],
            exclude: ["DESIGN.md"], resources: [.embedInCode("Status/page.css")],
            swiftSettings: settings(of: "Agent")),
        tests(
            "Agent",
            [
                "Configuration", "Containers", "Control", "Delivery", "EventLoops", "Model", "Logs", "Frames",
                "Intake",
                "Spool", "Events", "Outputs", "Queue", "Receiver", "TestKit", "TimeZones",
            ], fixtures: true),

        // spoolship
        .target(
            name: "CBuild", path: "Sources/CShims/CBuild",
            cSettings: commit.map { [.define("SPOOLSHIP_COMMIT", to: "\"\($0)\"")] } ?? []),
        .executableTarget(
            name: "spoolship",
            dependencies: [
                "Agent", "CBuild", "CCurl", "CGzip", "CLinux", "COpenSSL", "CSQLite", "CZstd",
                "Configuration",
                "Containers", "Control",
                "Digests", "EventLoops", "Model", "Outputs", "Receiver", "Spool",
            ],
            exclude: ["DESIGN.md"], swiftSettings: settings(of: "spoolship"),
            linkerSettings: linker.map { [.unsafeFlags(["-ld-path=\($0)"])] } ?? []),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "CSQLite", "Configuration", "Containers", "Control", "EventLoops", "Receiver", "TestKit",
                "spoolship",
            ],
            swiftSettings: strict),

        // SpoolshipClient
        module("SpoolshipClient", []),
        tests("SpoolshipClient", ["Events", "TestKit"], fixtures: true),

        // What the tests share
        shim("CCrashDisk", ["CSQLite"], under: "Tests"),
        .target(
            name: "TestKit", dependencies: ["CCrashDisk", "EventLoops", "Logs", "Model"],
            path: "Tests/TestKit",
            swiftSettings: settings(of: "TestKit")),

        // Tests of the built binary
        .executableTarget(
            name: "client-writer", dependencies: ["SpoolshipClient"], path: "Tests/ClientWriter",
            swiftSettings: strict),
        .executableTarget(
            name: "client-samples", dependencies: ["SpoolshipClient"], path: "examples/sdk-samples",
            swiftSettings: strict),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "EventLoops", "Model", "Receiver", "SpoolshipClient", "TestKit", "client-samples",
                "client-writer",
            ],
            exclude: ["Fixtures"], swiftSettings: strict),
    ],
    cxxLanguageStandard: .cxx17
)

// Benchmarks of single parts. On request, because they need what nothing else does: libsimdjson-dev
// (`scripts/bootstrap bench`).
if Context.environment["SPOOLSHIP_BENCHMARKS"] != nil {
    func benchmark(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name, dependencies: dependencies, path: "Benchmarks/Sources/\(name)",
            swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
    }
    package.targets += [
        shim("CSimdjson", linked: "simdjson", under: "Benchmarks/Sources"),
        benchmark("EventsBenchmark", ["CSimdjson", "EventLoops", "Events", "TestKit", "TimeZones"]),
        benchmark("EventsAgreement", ["CSimdjson", "EventLoops", "Events", "TestKit"]),
        benchmark("ContainersBenchmark", ["Containers", "EventLoops", "Events", "Model"]),
        benchmark("SchemasBenchmark", ["EventLoops", "Model", "Schemas"]),
        benchmark("QueueBenchmark", ["EventLoops", "Logs", "Model", "Queue", "TestKit"]),
        benchmark("SpoolBenchmark", ["EventLoops", "Logs", "Model", "Spool"]),
    ]
}

// The tests of some modules alone, `SPOOLSHIP_ONLY=Spool,Intake swift build --build-tests`: what they do not
// need is not built. Without it a change of one module builds all modules that import it, and their tests.
if let only = Context.environment["SPOOLSHIP_ONLY"] {
    let targets = Dictionary(uniqueKeysWithValues: package.targets.map { ($0.name, $0) })
    var needed: Set<String> = []
    var open = only.split(separator: ",").map { "\($0)Tests" }
    while let name = open.popLast() {
        guard let target = targets[name], needed.insert(name).inserted else { continue }
        for dependency in target.dependencies {
            switch dependency {
            case .targetItem(let name, _), .byNameItem(let name, _): open.append(name)
            default: break
            }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
