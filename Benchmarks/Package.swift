// swift-tools-version: 6.2

import PackageDescription

// Benchmarks that need more than the agent does. Apart, so that the agent's package does not depend on simdjson
// (libsimdjson-dev).
let package = Package(
    name: "spoolship-benchmarks",
    dependencies: [.package(name: "spoolship", path: "..")],
    targets: [
        .target(name: "CSimdjson", linkerSettings: [.linkedLibrary("simdjson")]),
        .executableTarget(
            name: "EventsBenchmark",
            dependencies: [
                "CSimdjson", .product(name: "Events", package: "spoolship"),
                .product(name: "TestKit", package: "spoolship"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "ContainersBenchmark", dependencies: [.product(name: "Containers", package: "spoolship")],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "QueueBenchmark", dependencies: [.product(name: "Queue", package: "spoolship")],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "SpoolBenchmark", dependencies: [.product(name: "Spool", package: "spoolship")],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "EventsAgreement",
            dependencies: [
                "CSimdjson", .product(name: "Events", package: "spoolship"),
                .product(name: "TestKit", package: "spoolship"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]),
    ],
    cxxLanguageStandard: .cxx17
)
