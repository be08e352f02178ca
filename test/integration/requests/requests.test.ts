// Tests of requests share one stack: importing a file adds its tests.
import './control-paths.ts'
import './deletion-meanwhile.ts'
import './pass-through.ts'
import './raw-requests.ts'
import './refused-bodies.ts'
import './refused-headers.ts'
import './refused-management.ts'
import './unknown-sessions.ts'
