from reverie.apps.team.server import app as app
from reverie.apps.team.server import batch_in as batch_in
