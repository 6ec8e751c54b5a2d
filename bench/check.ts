/**
 * `make bench-check`: a small fleet of real agents on a real API server, against the committed figures. Exits with 1 if
 * it costs more. A change of the product that shall cost more commits its figures:
 * `node bench/fleet.ts --nodes 20 --budget none --idle 0 --no-restart --workers 1 --keep`.
 */
import { createScreen } from '../demo/screen.ts'
import { checkFleet } from './fleet/check-fleet.ts'

try {
  const screen = createScreen(process.stderr, () => performance.now())
  const { regressions, report } = await checkFleet((text) => screen.line(text))
  console.log(`\n${report}`)
  for (const one of regressions) console.error(`regression: ${one}`)
  process.exitCode = regressions.length > 0 ? 1 : 0
} catch (error) {
  console.error(`measuring failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
