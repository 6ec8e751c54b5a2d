import { expect, test } from 'vitest'
import { imageRemedyOf } from './image-error-kind.ts'

const of = { skyhook: 'tuning', namespace: 'skyhook', image: 'registry.test:5000/tuned' }

test.each([
  ['registry.test:5000/tuned:9: 404 MANIFEST_UNKNOWN: manifest unknown', 'image and version', 'kubectl edit skyhook'],
  ['registry.test:5000/tuned@sha256:00: the digest is another one', 'containerSHA', 'kubectl edit skyhook tuning'],
  [
    'registry.test:5000: 401 UNAUTHORIZED: authentication required (used the login of a pull secret)',
    'imagePullSecrets',
    'kubectl -n skyhook get secrets --field-selector type=kubernetes.io/dockerconfigjson',
  ],
  [
    'registry.test:5000: connect ECONNREFUSED 10.0.0.1:5000',
    'has to reach the registry',
    'curl -sS https://registry.test:5000/v2/ # on the host',
  ],
  ['registry.test:5000: too many layers', 'do what the message says', 'kubectl edit skyhook tuning'],
])('the remedy for "%s" comes with a command that shows what has to be corrected', (message, unblock, command) => {
  const remedy = imageRemedyOf(message, of)
  expect(remedy.unblock).toContain(unblock)
  expect(remedy.command).toContain(command)
})

test.each([
  ['busybox', 'https://registry-1.docker.io/v2/'],
  ['NO/IMAGE/:at/all', 'kubectl edit skyhook tuning'],
])('where %s is not reached, the command asks %s', (image, command) => {
  expect(imageRemedyOf('connect ETIMEDOUT', { ...of, image }).command).toContain(command)
})
