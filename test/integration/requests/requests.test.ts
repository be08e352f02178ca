// Tests of requests share one stack: importing a file adds its tests.
import './control-paths.ts'
import './pass-through.ts'
import './raw-requests.ts'
import './refused-bodies.ts'
import './refusals.ts'
import './unknown-sessions.ts'
