// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "track",
    dependencies: [
        // A copy of Spoolship's sources; or .package(url: "https://…/spoolship.git", from: "0.1.0").
        .package(name: "spoolship", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "track", dependencies: [.product(name: "SpoolshipClient", package: "spoolship")])
    ]
)
