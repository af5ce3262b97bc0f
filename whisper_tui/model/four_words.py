"""Four words for a digest, which two people, or one person at two screens, can compare by reading."""

WORDS = tuple(
    """
    acorn album alpha amber apple arena arrow atlas baker bamboo banjo basil beach bell bench berry bird bison blade
    bloom boat bowl branch bread brick bridge brush bucket butter button cabin cable cake camel candle canoe canyon
    carbon cargo carpet castle cedar chair chalk cheese cherry chess clay cliff clock cloud clover cobra coffee coin
    copper coral cotton crab crane crown curtain daisy dawn deer desert desk diamond dinner dolphin donkey dragon
    drum duck eagle echo elbow ember engine falcon feather fern ferry finger fish flag flame flute forest fork
    fossil fox frog fruit galaxy garden garlic gate giant ginger glass glove gold grape grass guitar hammer harbor
    hawk hazel hill honey horse island jacket jaguar jazz jelly jewel jungle kayak kettle kite knot ladder lake lamp
    lantern leaf lemon letter lily lion lizard lobster magnet mango maple marble market meadow melon mint mirror
    moon moss mouse needle nest oak ocean olive onion orange orbit otter oyster panda paper parrot peach pearl
    pencil penguin pepper piano pigeon pilot pirate planet pocket potato prism pumpkin puzzle quartz quilt rabbit
    radio raven ribbon rice river rocket rose ruby saddle salad salt scarf school seed shark shell ship shoe silk
    silver skate sky smoke snail snow soap sofa spoon spring squid star steel stone storm straw sugar summer sun
    swan table tango tea temple tennis thumb tiger tile toast tomato torch tower train tree trumpet tulip tunnel
    turtle uncle valley velvet violin volcano wagon walnut water wave whale wheat wheel willow window winter wolf
    wood yacht yarn yellow zebra
    """.split()  # noqa: SIM905  a table of words
)
"""256 short words, one for each value of a byte. Their order is fixed: devices of any version show the same words."""

FourWords = tuple[str, str, str, str]


def four_words(digest: str) -> FourWords:
    """Return the words of the first four bytes of a digest in hex."""
    first, second, third, fourth = bytes.fromhex(digest)[:4]
    return WORDS[first], WORDS[second], WORDS[third], WORDS[fourth]
