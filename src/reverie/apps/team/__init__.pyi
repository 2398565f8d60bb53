from reverie.apps.team.batch import batch_in as batch_in
from reverie.apps.team.server import app as app
