import { useFixture } from './fixture.ts'

/** The one stack of all files that requests.test.ts imports. */
export const fixture = useFixture()
