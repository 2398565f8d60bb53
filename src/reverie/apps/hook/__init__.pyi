from reverie.apps.hook.events import main as main
